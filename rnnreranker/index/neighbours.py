"""The graph of an index: the nearest other documents of every document, by a part that the index has."""

from __future__ import annotations

import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar

from rnnreranker.errors import InputError
from rnnreranker.files import fingerprint
from rnnreranker.files.checksums import check_files
from rnnreranker.impacts import ImpactSource
from rnnreranker.index.build import BLOCK, Built, add_parts, describe
from rnnreranker.index.graph_params import GRAPHS, GraphParams
from rnnreranker.index.part import Part
from rnnreranker.neighbours import open_neighbours
from rnnreranker.neighbours.approximate import EXACT, approximate
from rnnreranker.neighbours.bm25_words import K1, B, write_bm25_words
from rnnreranker.neighbours.description import read_description
from rnnreranker.neighbours.graph import PART
from rnnreranker.neighbours.graph_files import K, write_graph
from rnnreranker.neighbours.graph_source import Earlier, GraphSource
from rnnreranker.neighbours.nearest import DenseNeighbours
from rnnreranker.neighbours.nearest_words import WordNeighbours
from rnnreranker.vectors import open_vectors
from rnnreranker.vectors.ids import read_ids


class NeighboursPart(Part):
    """A folder `neighbours`, made once the part that it is of stands in the index.

    Args:
        params: of the graph; without a part of dense vectors.
    """

    name: ClassVar[str] = PART

    def __init__(self, params: GraphParams | None = None) -> None:
        self._params = params or GraphParams()
        self._of = self._params.of or GRAPHS[0]
        self._earlier: Earlier | None = None

    def check(self) -> None:
        """Start Java where the words are in a Lucene index.

        Raises:
            UnavailableError: no Java 21 or newer.
        """
        if self._of == "bm25":
            from rnnreranker.java import start_java

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
        """Keep the blocks in a folder `neighbours`."""
        self._work, self._threads = work / PART, threads

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """As `write_graph`, from the part beside the texts; k, how many were wanted, and what it was made from."""
        wanted = K if self._params.k is None else self._params.k
        source = graph_source(corpus.parent, self._of, self._work, self._params.search, min(wanted, max(1, count - 1)))
        backend, cluster = self._params.backend, self._params.cluster
        self.reused = write_graph(
            source,
            folder / PART,
            wanted,
            threads=self._threads,
            backend=backend,
            cluster=cluster,
            work=self._work,
            earlier=self._earlier,
        )
        _, k, origin = read_description(folder / PART)
        return {"k": k, "wanted": wanted, **asdict(origin)}


def make_graph(
    index: Path, params: GraphParams, threads: int | None = None, overwrite: bool = False
) -> tuple[Built, bool]:
    """The graph of an index that stands there, whoever made it, and whether it was made now.

    An index of this package says of it what it was made from. Of another folder, as Pyserini's Faiss folders, vectors
    and docids are read, and a folder `neighbours` is all that is written.

    Args:
        index: the folder; an interrupted work goes on.
        params: of the graph; a graph that is not as it says is replaced, with `overwrite` any. threads: as in
            `write_graph`.

    Raises:
        InputError: no index, one without docids or a part that a graph is of; as `write_graph`.
        UnavailableError: as `write_bm25_words`.
    """
    described = describe(index)
    parts = described["parts"] if described else {"dense": {}}
    possible = [params.of] if params.of else GRAPHS
    of = next((one for one in possible if one in parts), "")
    if not of or not any((index / name).is_file() for name in ("docid", "ids")):
        raise InputError(f"{index}: no index of {' or '.join(possible)} with docids, of which a graph could be made")
    if not overwrite and has_graph(index, params):
        count = len(open_neighbours(index))
        return Built(index, count, count), False
    part = NeighboursPart(replace(params, of=of))
    if described:
        return add_parts(index, [part], threads=threads), True
    work, count = index / f"{PART}.partial", len(open_vectors(index).docids)
    part.start(work, threads)
    part.write(index, index / "corpus", count)
    shutil.rmtree(work)
    return Built(index, count, part.reused), True


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
        asked = ((params.of, made.of), (params.search, made.search))
        if any(one not in (None, other) for one, other in asked) or made.source != source_mark(index, made.of):
            return False
        graph.check_whole()
    except InputError:
        return False
    return params.k is None or graph.k == min(params.k, len(graph) - 1)
