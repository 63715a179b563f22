"""The part `neighbours`: the nearest other documents of every document, by another part of the index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from rnnreranker.base import settings
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.files.checksums import check_files
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
from rnnreranker.parts.vectors import open_vectors


@dataclass(frozen=True)
class GraphParams(settings.Params):
    """Settings of a graph; None accepts whatever an existing graph has.

    Raises:
        InputError: values out of range, an approximate search of another part than dense.
    """

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
    """The folder `neighbours`, made once the index has the part that it compares documents by."""

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
    def on_devices(cls) -> bool:
        return True

    @classmethod
    def inputs(cls, params: GraphParams) -> None:
        """None: a graph of other settings is replaced, see `stands`."""

    @classmethod
    def params_of(cls, described: Mapping[str, Any]) -> GraphParams:
        search = described.get("search")
        return GraphParams(described.get("wanted"), described.get("of"), "ivf" if search == "hnsw" else search)

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
        """Start Java if the words are in a Lucene index; UnavailableError: no Java 21 or newer."""
        if self._of == "bm25":
            from rnnreranker.base.java import start_java

            start_java()

    def extend(self, index: Path) -> None:
        """Compare known documents only with new ones, where their similarities stay.

        They stay in an exact graph of vectors or impacts, for whole blocks of documents. BM25 weights change with the
        number of documents.
        """
        graph = open_neighbours(index)
        if graph.origin.search == "exact" and graph.origin.of != "bm25":
            self._earlier = Earlier(graph.path, len(graph), graph.k, len(graph) // BLOCK * BLOCK)

    def start(self, work: Path, threads: int | None) -> None:
        self._work, self._threads = work / PART, threads

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """As `write_graph`; returns k, the wanted k, and the origin."""
        wanted = self._params.k or K
        source = graph_source(corpus.parent, self._of, self._work, self._params.search, min(wanted, max(1, count - 1)))
        self.reused = write_graph(source, folder / PART, wanted, work=self._work, earlier=self._earlier, **self._how)
        _, k, origin = read_description(folder / PART)
        return {"k": k, "wanted": wanted, **asdict(origin)}

    def write_share(self, index: Path, share: Share) -> str:
        """See `Part`: pairs of stretches of vectors, or blocks of documents."""
        search = self._params.search
        if self._of == "bm25" or search == "ivf":
            of = f"of {self._of}" if self._of == "bm25" else f"with search={search}"
            raise InputError(f"{argument('shard_id', share[0])}: a graph {of} is made by one process; leave it out")
        source = graph_source(index, self._of, self._work, "exact")
        if self._of == "dense" and search is None and len(source.docids) > EXACT:
            raise InputError(
                f"{argument('shard_id', share[0])}: a graph of {len(source.docids)} documents is made by ivf, in one "
                "process, where nothing else is said; give neighbours:search=exact here and to put it together"
            )
        made, own = GraphFiles(source, self._params.k or K, self._work, **self._how).share(*share)
        return f"{made} files made, {own - made} were there"

    @property
    def _how(self) -> dict[str, Any]:
        """Arguments of `GraphFiles`; GPUs make products of vectors in half precision."""
        memory = None if self._params.device_memory is None else int(self._params.device_memory * 1e9)
        names = self.devices.names if self.devices is not None and self.devices.elsewhere else ()
        half = tuple(HalfProducts(name, memory) for name in names)
        return {"threads": self._threads, "backend": self.backend, "address": self.address, "half": half}


def graph_source(index: Path, of: str, work: Path, search: str | None = None, k: int = K) -> GraphSource:
    """The documents of an index as one of its parts compares them.

    Args:
        index: the folder; of: "dense", "impact" or "bm25".
        work: a folder for an approximate index; the words of a Lucene index go into a sibling of it.
        search: as `GraphParams`; k: neighbours that an approximate index is to find.

    Raises:
        InputError: no such part, or one that cannot be used.
        UnavailableError: as `bm25_words`.
    """
    source: GraphSource
    if of == "dense":
        source = DenseNeighbours(open_vectors(index))
        if (search or ("exact" if len(source.docids) <= EXACT else "ivf")) == "ivf":
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


@lru_cache(maxsize=1)
def _opened(index: Path, of: str, work: Path, search: str | None, k: int, mark: str) -> GraphSource:
    """The documents in another process, opened once for each fingerprint."""
    return graph_source(index, of, work, search, k)


def _impacts(index: Path) -> ImpactSource:
    return ImpactSource(index, describe(index).get("parts", {}).get("impact", {}))


def source_mark(index: Path, of: str) -> str:
    """The fingerprint of what a graph is made of; for BM25 that of the texts.

    Raises:
        InputError: as `graph_source`.
    """
    if of == "dense":
        return open_vectors(index).fingerprint
    if of == "impact":
        return _impacts(index).fingerprint
    described = describe(index)
    language = described.get("parts", {}).get("bm25", {}).get("language")
    return fingerprint("bm25", described.get("content"), K1, B, *([language] if language else []))


def has_graph(index: Path, params: GraphParams) -> bool:
    """Whether an index has a usable graph of these parameters."""
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
