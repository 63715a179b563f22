"""The nearest other documents by inner products of vectors, exactly; a block of rows depends on nothing but itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.vectors import VectorSource, open_vectors
from rnnreranker.vectors.exact import exact_search, inner_products

COLUMNS = 8192  # documents that a block of rows is compared with at a time


class DenseNeighbours:
    """A `GraphSource` of N vectors.

    The order is that of inner products summed in one way in float64, so that it depends neither on the rows beside
    one another nor on threads.

    Args:
        vectors: compared.
        path: where other processes open them; None = they are sent there.
    """

    of = "dense"
    similarity = "inner product"
    search = "exact"

    def __init__(self, vectors: VectorSource, path: Path | None = None) -> None:
        self.vectors, self.path = vectors, path
        self.docids: Sequence[str] = vectors.docids

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the vectors itself."""
        return (DenseNeighbours, (self.vectors,)) if self.path is None else (_opened, (self.path, self.fingerprint))

    @property
    def fingerprint(self) -> str:
        """Of the vectors."""
        return self.vectors.fingerprint

    def nearest(self, rows: np.ndarray, k: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """As `GraphSource`.

        Raises:
            InputError: NaN or infinite vectors.
        """
        count = len(self.docids) - first

        def propose(queries: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
            scores, found = _largest(queries, _blocks(self.vectors, first, max(COLUMNS, wanted)), wanted)
            return scores, found - first

        def fetch(places: np.ndarray) -> np.ndarray:
            return self.vectors.fetch(places + first)

        found = exact_search(self.vectors.fetch(rows), k + 1, range(count), propose, fetch)  # type: ignore[arg-type]
        edges, scores = np.repeat(rows[:, None], k, axis=1), np.zeros((len(rows), k))
        for place, row in enumerate(rows.tolist()):
            others = np.flatnonzero(found[1][place] + first != row)[:k]  # of k + 1, itself or the last falls out
            edges[place, : len(others)] = found[1][place][others] + first
            scores[place, : len(others)] = found[0][place][others]
        return edges, scores

    def similarities(self, rows: np.ndarray, edges: np.ndarray) -> np.ndarray:
        """As `GraphSource`."""
        own = self.vectors.fetch(rows)
        return np.array([inner_products(one, self.vectors.fetch(line)) for one, line in zip(own, edges, strict=True)])


@lru_cache(maxsize=1)
def _opened(path: Path, mark: str) -> DenseNeighbours:
    """The vectors at a path, once in a process for as long as it is of them."""
    return DenseNeighbours(open_vectors(path), path)


def _blocks(source: VectorSource, start: int, size: int) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, (up to size, d) float32) from a row to the last."""
    count = len(source.docids)
    for first in range(start, count, size):
        yield first, source.fetch(np.arange(first, min(first + size, count)))


def _largest(
    queries: np.ndarray, blocks: Iterator[tuple[int, np.ndarray]], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (Q, count) float32, non-increasing, and rows (Q, count) int64 of the largest float32 products."""
    scores = np.empty((len(queries), 0), dtype=np.float32)
    rows = np.empty((len(queries), 0), dtype=np.int64)
    for first, block in blocks:
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond float32 is settled in float64
            products = queries @ block.T
        numbers = np.broadcast_to(np.arange(first, first + len(block)), products.shape)
        best, places = _cut(products, numbers, count)
        scores, rows = _cut(np.concatenate([scores, best], axis=1), np.concatenate([rows, places], axis=1), count)
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)


def _cut(scores: np.ndarray, rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` largest scores of every line with their rows, in any order."""
    if scores.shape[1] <= count:
        return scores, rows
    best = np.argpartition(scores, scores.shape[1] - count, axis=1)[:, -count:]
    return np.take_along_axis(scores, best, axis=1), np.take_along_axis(rows, best, axis=1)
