"""The part `neighbours`: the nearest other documents of every document, by another part of the index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from rnnreranker.base import settings
from rnnreranker.base.arguments import argument
from rnnreranker.base.checksums import check_files
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.request import Share
from rnnreranker.base.settings import setting
from rnnreranker.parts.base import BLOCK, Part, describe, described_part
from rnnreranker.parts.impacts import ImpactSource
from rnnreranker.parts.neighbours import NeighbourGraph, open_neighbours
from rnnreranker.parts.neighbours.description import PART, read_description
from rnnreranker.parts.neighbours.files import Earlier, GraphFiles, K, write_graph
from rnnreranker.parts.neighbours.nearest import EXACT, ApproximateNeighbours, DenseNeighbours, GraphSource
from rnnreranker.parts.neighbours.words import K1, B, WordNeighbours, bm25_words
from rnnreranker.parts.vectors import open_vectors


@dataclass(frozen=True)
class GraphParams(settings.Params):
    """Settings of a graph; None accepts any graph. InputError: values out of range, ivf of another part than dense."""

    k: int | None = setting(None, "neighbours of a document; none: 16", at_least=1)
    by: Literal["dense", "impact", "bm25"] | None = setting(
        None,
        "the part that documents are compared by; none: the first of these that the index has",
    )
    search: Literal["exact", "ivf"] | None = setting(
        None,
        f"of dense vectors; none: exact up to {EXACT} documents and ivf beyond",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.search == "ivf" and self.by not in (None, "dense"):
            raise InputError(f"graph search {self.search} is of dense vectors; {self.by} is searched exactly")


class NeighboursPart(Part):
    """The folder `neighbours`."""

    name, gives, rank = PART, "neighbours", 50
    Params = GraphParams
    made_of = ("dense", "impact", "bm25")
    _earlier: Earlier | None = None

    @classmethod
    def make(cls, params: GraphParams, beside: Mapping[str, Any]) -> NeighboursPart:
        by: Any = next((one for one in cls.origins(params) if one in beside), None)
        return cls(replace(params, by=by))

    @classmethod
    def origins(cls, params: GraphParams) -> tuple[str, ...]:
        return (params.by,) if params.by else cls.made_of

    @classmethod
    def params_of(cls, described: Mapping[str, Any]) -> GraphParams:
        return GraphParams(described.get("wanted"), described.get("of"), described.get("search"))

    @classmethod
    def stands(cls, index: Path, params: Any = None) -> bool:
        return cls.at(index) is not None if params is None else has_graph(index, params)

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> NeighbourGraph:
        return open_neighbours(at, str(described.get("source", "")))

    def __init__(self, params: GraphParams | None = None) -> None:
        self._params = params or GraphParams()
        self._of = self._params.by or self.made_of[0]

    def check(self) -> None:
        if self._of == "bm25":
            from rnnreranker.base.java import start_java

            start_java()

    def extend(self, index: Path) -> None:
        """Compare known documents only with new ones, if the graph is exact and not of BM25, whose weights change."""
        graph = open_neighbours(index)
        if graph.origin.search == "exact" and graph.origin.of != "bm25":
            self._earlier = Earlier(graph.path, len(graph), graph.k, len(graph) // BLOCK * BLOCK)

    def start(self, work: Path, threads: int | None) -> None:
        self._work = work / PART
        self._how: dict[str, Any] = {"threads": threads, "backend": self.backend, "address": self.address}

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        wanted = self._params.k or K
        source = self._source(corpus.parent, min(wanted, max(1, count - 1)))
        self.reused = write_graph(source, folder / PART, wanted, work=self._work, earlier=self._earlier, **self._how)
        _, k, origin = read_description(folder / PART)
        return {"k": k, "wanted": wanted, **asdict(origin)}

    def write_share(self, index: Path, share: Share) -> str:
        search = self._params.search or ("exact" if self._of != "dense" else search_of(len(open_vectors(index).docids)))
        if self._of == "bm25" or search == "ivf":
            raise InputError(
                f"{argument('shard_id', share[0])}: a graph of {self._of} with search={search} is made by one process; "
                "leave it out, or give neighbours:search=exact here and to put it together"
            )
        made, own = GraphFiles(self._source(index), self._params.k or K, self._work, **self._how).make(share)
        return f"neighbours of {made} documents made, of {own - made} were there"

    def _source(self, index: Path, k: int = K) -> GraphSource:
        names = self.devices.names if self.devices is not None and self.devices.elsewhere else ()
        return graph_source(index, self._of, self._work, self._params.search, k, names)


def graph_source(
    index: Path, of: str, work: Path, search: str | None = None, k: int = K, devices: tuple[str, ...] = ()
) -> GraphSource:
    """The documents of an index as one of its parts compares them.

    Args:
        of: "dense", "impact" or "bm25"; work: a folder for an approximate index, next to the words of a Lucene index.
        search: as `GraphParams`; k: neighbours that an approximate index is to find; devices: as `DenseNeighbours`.

    Raises:
        InputError, UnavailableError: no such part, or one that cannot be used; as `bm25_words`.
    """
    source: GraphSource
    if of == "dense":
        vectors = open_vectors(index)
        approximate = (search or search_of(len(vectors.docids))) == "ivf"
        source = DenseNeighbours(vectors, () if approximate else devices)
        if approximate:
            source = ApproximateNeighbours(source, k, work)
    elif search == "ivf":
        raise InputError(f"graph search {search} is of dense vectors; {of} is searched exactly")
    else:
        check_files(index, of)
        mark = source_mark(index, of)
        words = _impacts(index) if of == "impact" else bm25_words(index, work.with_name(f"words-{mark}"))
        source = WordNeighbours(words, of, mark)
    source.opened = (_opened, (index, of, work, search, k, devices, source.fingerprint))
    return source


def search_of(documents: int) -> str:
    return "exact" if documents <= EXACT else "ivf"


@lru_cache(maxsize=1)
def _opened(*arguments: Any) -> GraphSource:
    return graph_source(*arguments[:-1])


def _impacts(index: Path) -> ImpactSource:
    return ImpactSource(index, described_part(index, "impact"))


def source_mark(index: Path, of: str) -> str:
    """The fingerprint of what a graph is made of; for BM25 that of the texts."""
    if of == "dense":
        return open_vectors(index).fingerprint
    if of == "impact":
        return _impacts(index).fingerprint
    language = described_part(index, of).get("language")
    return fingerprint("bm25", describe(index).get("content"), K1, B, *([language] if language else []))


def has_graph(index: Path, params: GraphParams) -> bool:
    try:
        graph = open_neighbours(index)
        made = graph.origin
        asked = ((params.by, made.of), (params.search, made.search))
        if any(one not in (None, other) for one, other in asked) or made.source != source_mark(index, made.of):
            return False
        graph.check_whole()
    except InputError:
        return False
    return params.k is None or graph.k == min(params.k, len(graph) - 1)
