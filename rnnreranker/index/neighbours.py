"""The graph of an index: the nearest other documents of every document, from the vectors that the index has."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from rnnreranker.errors import InputError
from rnnreranker.index.part import Part
from rnnreranker.neighbours import open_neighbours
from rnnreranker.neighbours.description import read_description
from rnnreranker.neighbours.graph import PART
from rnnreranker.neighbours.graph_files import K, write_graph
from rnnreranker.vectors import open_vectors


class NeighboursPart(Part):
    """A folder `neighbours`, made once the dense part stands in the index.

    Args:
        k: neighbours of a document; None = 16.

    Raises:
        InputError: k < 1.
    """

    name: ClassVar[str] = PART

    def __init__(self, k: int | None = None) -> None:
        self._k = K if k is None else k
        if self._k < 1:
            raise InputError(f"neighbours={k}: expected an integer >= 1")

    def start(self, work: Path, threads: int | None) -> None:
        """Keep the blocks in a folder `neighbours`."""
        self._work, self._threads = work / PART, threads

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """As `write_graph`, from the vectors beside the texts; k and what the graph was made from."""
        source = open_vectors(corpus.parent)
        self.reused = write_graph(source, folder / PART, self._k, threads=self._threads, work=self._work)
        _, k, origin = read_description(folder / PART)
        return {"k": k, **asdict(origin)}


def has_graph(index: Path, k: int | None) -> bool:
    """Whether an index has a graph of its vectors that can be used, with k neighbours (None = any number)."""
    try:
        graph = open_neighbours(index / PART, open_vectors(index).fingerprint)
        graph.check_whole()
    except InputError:
        return False
    return k is None or graph.k == min(k, len(graph) - 1)
