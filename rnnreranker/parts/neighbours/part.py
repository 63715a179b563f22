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
from rnnreranker.parts.base import BLOCK, Part, describe
from rnnreranker.parts.impacts import ImpactSource
from rnnreranker.parts.neighbours import NeighbourGraph, open_neighbours
from rnnreranker.parts.neighbours.description import read_description
from rnnreranker.parts.neighbours.files import Earlier, GraphFiles, K, write_graph
from rnnreranker.parts.neighbours.graph import PART
from rnnreranker.parts.neighbours.nearest import EXACT, ApproximateNeighbours, DenseNeighbours, GraphSource
from rnnreranker.parts.neighbours.on_device import HalfProducts
from rnnreranker.parts.neighbours.words import K1, B, WordNeighbours, bm25_words
from rnnreranker.parts.vectors import VectorSource, open_vectors


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
    device_memory: float | None = setting(
        None, "GB of each --device for blocks of vectors and their products; none: half of what is free", above=0
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
    aliases = ("graph",)

    @classmethod
    def make(cls, params: GraphParams, beside: Mapping[str, Any]) -> NeighboursPart:
        by: Any = next((one for one in cls.origins(params) if one in beside), None)
        return cls(replace(params, by=by))

    @classmethod
    def origins(cls, params: GraphParams) -> tuple[str, ...]:
        return (params.by,) if params.by else cls.made_of

    @classmethod
    def inputs(cls, params: GraphParams) -> None:
        """None: a graph of other settings is replaced, see `stands`."""

    @classmethod
    def params_of(cls, described: Mapping[str, Any]) -> GraphParams:
        return GraphParams(described.get("wanted"), described.get("of"), described.get("search"))

    @classmethod
    def at(cls, path: Path) -> Path | None:
        return own if (own := path / PART).is_dir() else None

    @classmethod
    def stands(cls, index: Path, params: Any = None) -> bool:
        return cls.at(index) is not None if params is None else has_graph(index, params)

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> NeighbourGraph:
        return open_neighbours(at, str(described.get("source", "")))

    def __init__(self, params: GraphParams | None = None) -> None:
        self._params = params or GraphParams()
        self._of = self._params.by or self.made_of[0]
        self._earlier: Earlier | None = None

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
        self._work, self._threads = work / PART, threads

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        wanted = self._params.k or K
        source = graph_source(corpus.parent, self._of, self._work, self._params.search, min(wanted, max(1, count - 1)))
        self.reused = write_graph(source, folder / PART, wanted, work=self._work, earlier=self._earlier, **self._how)
        _, k, origin = read_description(folder / PART)
        return {"k": k, "wanted": wanted, **asdict(origin)}

    def write_share(self, index: Path, share: Share) -> str:
        search = self._params.search or ("exact" if self._of != "dense" else _search_of(open_vectors(index)))
        if self._of == "bm25" or search == "ivf":
            raise InputError(
                f"{argument('shard_id', share[0])}: a graph of {self._of} with search={search} is made by one process; "
                "leave it out, or give neighbours:search=exact here and to put it together"
            )
        source = graph_source(index, self._of, self._work, "exact")
        made, own = GraphFiles(source, self._params.k or K, self._work, **self._how).share(*share)
        return f"{made} files made, {own - made} were there"

    @property
    def _how(self) -> dict[str, Any]:
        memory = None if self._params.device_memory is None else int(self._params.device_memory * 1e9)
        names = self.devices.names if self.devices is not None and self.devices.elsewhere else ()
        half = tuple(HalfProducts(name, memory) for name in names)
        return {"threads": self._threads, "backend": self.backend, "address": self.address, "half": half}


def graph_source(index: Path, of: str, work: Path, search: str | None = None, k: int = K) -> GraphSource:
    """The documents of an index as one of its parts compares them.

    Args:
        of: "dense", "impact" or "bm25"; work: a folder for an approximate index, next to the words of a Lucene index.
        search: as `GraphParams`; k: neighbours that an approximate index is to find.

    Raises:
        InputError, UnavailableError: no such part, or one that cannot be used; as `bm25_words`.
    """
    source: GraphSource
    if of == "dense":
        vectors = open_vectors(index)
        source = DenseNeighbours(vectors)
        if (search or _search_of(vectors)) == "ivf":
            source = ApproximateNeighbours(source, k, work)
    elif search == "ivf":
        raise InputError(f"graph search {search} is of dense vectors; {of} is searched exactly")
    elif of == "impact":
        impacts = _impacts(index)
        source = WordNeighbours(impacts, of, impacts.fingerprint)
    else:
        check_files(index, "bm25")
        mark = source_mark(index, of)
        source = WordNeighbours(bm25_words(index, work.with_name(f"words-{mark}")), of, mark)
    source.opened = (_opened, (index, of, work, search, k, source.fingerprint))
    return source


def _search_of(vectors: VectorSource) -> str:
    return "exact" if len(vectors.docids) <= EXACT else "ivf"


@lru_cache(maxsize=1)
def _opened(index: Path, of: str, work: Path, search: str | None, k: int, mark: str) -> GraphSource:
    return graph_source(index, of, work, search, k)


def _impacts(index: Path) -> ImpactSource:
    return ImpactSource(index, describe(index).get("parts", {}).get("impact", {}))


def source_mark(index: Path, of: str) -> str:
    """The fingerprint of what a graph is made of; for BM25 that of the texts."""
    if of == "dense":
        return open_vectors(index).fingerprint
    if of == "impact":
        return _impacts(index).fingerprint
    described = describe(index)
    language = described.get("parts", {}).get("bm25", {}).get("language")
    return fingerprint("bm25", described.get("content"), K1, B, *([language] if language else []))


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
