"""The graph of an index: the nearest other documents of every document, by a part that the index has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar

from rnnreranker.base import settings
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.files.checksums import check_files
from rnnreranker.base.shards import Share
from rnnreranker.parts.base import BLOCK, Part
from rnnreranker.parts.description import describe
from rnnreranker.parts.impacts import ImpactSource
from rnnreranker.parts.neighbours import NeighbourGraph, open_neighbours
from rnnreranker.parts.neighbours.approximate import EXACT, approximate
from rnnreranker.parts.neighbours.bm25_words import K1, B, write_bm25_words
from rnnreranker.parts.neighbours.description import read_description
from rnnreranker.parts.neighbours.files import K, write_graph, write_share
from rnnreranker.parts.neighbours.graph import PART
from rnnreranker.parts.neighbours.nearest import DenseNeighbours
from rnnreranker.parts.neighbours.nearest_words import WordNeighbours
from rnnreranker.parts.neighbours.on_device import HalfProducts
from rnnreranker.parts.neighbours.params import GraphParams
from rnnreranker.parts.neighbours.source import Earlier, GraphSource
from rnnreranker.parts.vectors import open_vectors
from rnnreranker.parts.vectors.ids import read_ids


class NeighboursPart(Part):
    """A folder `neighbours`, made once the part that it is of stands in the index.

    Args:
        params: of the graph; without a part of dense vectors.
    """

    name: ClassVar[str] = PART
    Params: ClassVar[type[settings.Params]] = GraphParams
    gives: ClassVar[str] = "neighbours"
    made_of: ClassVar[tuple[str, ...]] = ("dense", "impact", "bm25")
    rank: ClassVar[int] = 50
    aliases: ClassVar[tuple[str, ...]] = ("graph",)

    @classmethod
    def make(cls, params: GraphParams, beside: Mapping[str, Any]) -> NeighboursPart:
        """Of the part that the settings name, else of the first that stands in the index."""
        by: Any = next((one for one in cls.origins(params) if one in beside), None)
        return cls(replace(params, by=by))

    @classmethod
    def origins(cls, params: GraphParams) -> tuple[str, ...]:
        return (params.by,) if params.by else cls.made_of

    @classmethod
    def on_devices(cls) -> bool:
        """Products of dense vectors can."""
        return True

    @classmethod
    def inputs(cls, params: GraphParams) -> None:
        """Nothing: a graph of other settings is replaced, see `stands`."""

    @classmethod
    def params_of(cls, described: Mapping[str, Any]) -> GraphParams:
        return GraphParams(*(described.get(key) for key in ("wanted", "of", "search")))

    @classmethod
    def at(cls, path: Path) -> Path | None:
        return own if (own := path / PART).is_dir() else None

    @classmethod
    def stands(cls, index: Path, params: Any = None) -> bool:
        return cls.at(index) is not None if params is None else has_graph(index, params)

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> NeighbourGraph:
        """The graph; no vector is opened."""
        return open_neighbours(at, str(described.get("source", "")))

    def __init__(self, params: GraphParams | None = None) -> None:
        self._params = params or GraphParams()
        self._of = self._params.by or self.made_of[0]
        self._earlier: Earlier | None = None

    def check(self) -> None:
        """Start Java if the words are in a Lucene index.

        Raises:
            UnavailableError: no Java 21 or newer.
        """
        if self._of == "bm25":
            from rnnreranker.base.java import start_java

            start_java()

    def extend(self, index: Path) -> None:
        """Compare documents that the index has with those alone that join, where their similarities stay.

        They do where the graph is exact and of vectors or impacts: those of blocks of documents that the index has
        whole are taken as they are. Weights of BM25 change with the number of documents.
        """
        graph = open_neighbours(index)
        if graph.origin.search == "exact" and graph.origin.of != "bm25":
            self._earlier = Earlier(graph.path, len(graph), graph.k, len(graph) // BLOCK * BLOCK)

    def start(self, work: Path, threads: int | None) -> None:
        self._work, self._threads = work / PART, threads

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """As `write_graph`, from the part beside the texts; k, how many were wanted, and what it was made from."""
        wanted = K if self._params.k is None else self._params.k
        k = min(wanted, max(1, count - 1))
        source = graph_source(corpus.parent, self._of, self._work, self._params.search, k)
        self.reused = write_graph(
            source,
            folder / PART,
            wanted,
            threads=self._threads,
            backend=self.backend,
            address=self.address,
            work=self._work,
            earlier=self._earlier,
            half=self._half(),
        )
        _, k, origin = read_description(folder / PART)
        return {"k": k, "wanted": wanted, **asdict(origin)}

    def write_share(self, index: Path, share: Share) -> str:
        """See `Part`: pairs of stretches of vectors, or blocks of documents with impacts."""
        if self._of == "bm25" or self._params.search in ("ivf", "hnsw"):
            of = f"of {self._of}" if self._of == "bm25" else f"with search={self._params.search}"
            raise InputError(f"{argument('shard_id', share[0])}: a graph {of} is made by one process; leave it out")
        source = graph_source(index, self._of, self._work, "exact")
        if self._of == "dense" and self._params.search is None and len(source.docids) > EXACT:
            raise InputError(
                f"{argument('shard_id', share[0])}: a graph of {len(source.docids)} documents is made by ivf, in one "
                "process, where nothing else is said; give neighbours:search=exact here and to put it together"
            )
        made, own = write_share(
            source,
            K if self._params.k is None else self._params.k,
            share,
            self._work,
            threads=self._threads,
            backend=self.backend,
            address=self.address,
            half=self._half(),
        )
        return f"{made} files made, {own - made} were there"

    def _half(self) -> tuple[HalfProducts, ...]:
        """The GPUs that products of vectors are made on; none = they are made by the processor, in float32."""
        if self.devices is None or not self.devices.elsewhere:
            return ()
        given = self._params.device_memory
        memory = None if given is None else int(given * 1e9)
        return tuple(HalfProducts(name, memory) for name in self.devices.names)


def graph_source(index: Path, of: str, work: Path, search: str | None = None, k: int = K) -> GraphSource:
    """The documents of an index as one of its parts compares them.

    Args:
        index: the folder.
        of: "dense", "impact" or "bm25".
        work: a folder for an approximate index; words that are read out of a Lucene index are put beside it.
        search: as `GraphParams`; k: neighbours that an approximate index is to find.

    Raises:
        InputError: no such part, or one that cannot be used.
        UnavailableError: as `write_bm25_words`.
    """
    if of == "dense":
        exact = DenseNeighbours(open_vectors(index), index)
        search = search or ("exact" if len(exact.docids) <= EXACT else "ivf")
        return exact if search == "exact" else approximate(exact, search, k, work)
    if search not in (None, "exact"):
        raise InputError(f"graph search {search} is of dense vectors; {of} is searched exactly")
    if of == "impact":
        impacts = ImpactSource(index, describe(index).get("parts", {}).get("impact", {}))
        folder, vocabulary, docids = index / "impacts", impacts.vocabulary, impacts.docids
        return WordNeighbours(folder, docids, vocabulary, of, impacts.fingerprint, index / "docid")
    check_files(index, "bm25")
    mark, docids = source_mark(index, of), read_ids(index / "docid").names
    words = work.with_name(f"words-{mark}")
    write_bm25_words(index / "bm25", docids, words)
    return WordNeighbours(words, docids, None, of, mark, index / "docid")


def source_mark(index: Path, of: str) -> str:
    """The fingerprint of what a graph of a part is made from; that of BM25 is of the texts that Lucene has.

    Raises:
        InputError: as `graph_source`.
    """
    if of == "dense":
        return open_vectors(index).fingerprint
    described = describe(index)
    if of == "impact":
        return ImpactSource(index, described.get("parts", {}).get("impact", {})).fingerprint
    language = described.get("parts", {}).get("bm25", {}).get("language")
    return fingerprint("bm25", described.get("content"), K1, B, *([language] if language else []))


def has_graph(index: Path, params: GraphParams) -> bool:
    """Whether an index has a graph that can be used and is as it was asked for."""
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
