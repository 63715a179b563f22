"""The graph of an index: the nearest other documents of every document, by a part that the index has."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from rnnreranker.errors import InputError
from rnnreranker.files import fingerprint
from rnnreranker.impacts import ImpactSource
from rnnreranker.index.build import describe
from rnnreranker.index.part import Part
from rnnreranker.neighbours import open_neighbours
from rnnreranker.neighbours.bm25_words import K1, B, write_bm25_words
from rnnreranker.neighbours.description import read_description
from rnnreranker.neighbours.graph import PART
from rnnreranker.neighbours.graph_files import K, write_graph
from rnnreranker.neighbours.graph_source import GraphSource
from rnnreranker.neighbours.nearest import DenseNeighbours
from rnnreranker.neighbours.nearest_words import WordNeighbours
from rnnreranker.vectors import open_vectors
from rnnreranker.vectors.ids import read_ids


class NeighboursPart(Part):
    """A folder `neighbours`, made once the part that it is of stands in the index.

    Args:
        k: neighbours of a document; None = 16.
        of: "dense", "impact" or "bm25".

    Raises:
        InputError: k < 1.
    """

    name: ClassVar[str] = PART

    def __init__(self, k: int | None = None, of: str = "dense") -> None:
        self._k = K if k is None else k
        self._of = of
        if self._k < 1:
            raise InputError(f"neighbours={k}: expected an integer >= 1")

    def check(self) -> None:
        """Start Java where the words are in a Lucene index.

        Raises:
            UnavailableError: no Java 21 or newer.
        """
        if self._of == "bm25":
            from rnnreranker.java import start_java

            start_java()

    def start(self, work: Path, threads: int | None) -> None:
        """Keep the blocks in a folder `neighbours`."""
        self._work, self._threads = work / PART, threads

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """As `write_graph`, from the part beside the texts; k and what the graph was made from."""
        source = graph_source(corpus.parent, self._of, self._work.parent)
        self.reused = write_graph(source, folder / PART, self._k, threads=self._threads, work=self._work)
        _, k, origin = read_description(folder / PART)
        return {"k": k, **asdict(origin)}


def graph_source(index: Path, of: str, work: Path) -> GraphSource:
    """The documents of an index as one of its parts compares them.

    Args:
        index: the folder.
        of: "dense", "impact" or "bm25".
        work: a folder for the words that are read out of a Lucene index.

    Raises:
        InputError: no such part, or one that cannot be used.
        UnavailableError: as `write_bm25_words`.
    """
    if of == "dense":
        return DenseNeighbours(open_vectors(index))
    if of == "impact":
        impacts = ImpactSource(index, describe(index).get("parts", {}).get("impact", {}))
        folder, vocabulary, docids = index / "impacts", impacts.vocabulary, impacts.docids
        return WordNeighbours(folder, docids, vocabulary, of, impacts.fingerprint)
    mark, docids = source_mark(index, of), read_ids(index / "docid").names
    words = work / f"words-{mark}"
    write_bm25_words(index / "bm25", docids, words)
    return WordNeighbours(words, docids, None, of, mark)


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
    return fingerprint("bm25", described.get("content"), K1, B)


def has_graph(index: Path, k: int | None, of: str | None = None) -> bool:
    """Whether an index has a graph that can be used, with k neighbours and of a part (None = any number, any part)."""
    try:
        graph = open_neighbours(index)
        if of not in (None, graph.origin.of) or graph.origin.source != source_mark(index, graph.origin.of):
            return False
        graph.check_whole()
    except InputError:
        return False
    return k is None or graph.k == min(k, len(graph) - 1)
