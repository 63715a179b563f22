"""The nearest other documents by inner products of vectors, exactly; a block of rows depends on nothing but itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.process.faiss_threads import one_thread
from rnnreranker.vectors import VectorSource, open_vectors
from rnnreranker.vectors.exact import exact_search, inner_products, largest

COLUMNS = 8192  # documents that a block of rows is compared with at a time
SPARE = 9  # documents proposed beyond a list and the document itself
OVERFLOW = 1e37  # products below it, summed, fit float32


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
            scores, proposed = _largest(queries, _blocks(self.vectors, first, max(COLUMNS, wanted)), wanted)
            return scores, proposed - first

        def fetch(places: np.ndarray) -> np.ndarray:
            return self.vectors.fetch(places + first)

        numbers: Sequence[str] = range(count)  # type: ignore[assignment]  # ties go to the lower row
        nearest = exact_search(self.vectors.fetch(rows), k + 1, numbers, propose, fetch, SPARE)
        edges, scores = np.repeat(rows[:, None], k, axis=1), np.zeros((len(rows), k))
        if not count or not len(rows):
            return edges, scores
        # of k + 1 the document itself falls out, or the last
        similarities, best = np.stack(nearest[0]), np.stack(nearest[1]) + first
        order = np.argsort(best == rows[:, None], axis=1, kind="stable")[:, :k]
        others = np.take_along_axis(best, order, axis=1) != rows[:, None]
        edges[:, : order.shape[1]] = np.take_along_axis(best, order, axis=1)
        scores[:, : order.shape[1]] = np.where(others, np.take_along_axis(similarities, order, axis=1), 0.0)
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
    import faiss

    scores = np.empty((len(queries), 0), dtype=np.float32)
    rows = np.empty((len(queries), 0), dtype=np.int64)
    highest = float(np.abs(queries).max(initial=0.0)) * queries.shape[1]
    for first, block in blocks:
        if highest * float(np.abs(block).max(initial=0.0)) < OVERFLOW:
            with one_thread(faiss):
                best, places = faiss.knn(queries, block, min(count, len(block)), metric=faiss.METRIC_INNER_PRODUCT)
        else:  # what is beyond float32 is settled in float64
            with np.errstate(over="ignore", invalid="ignore"):
                products = queries @ block.T
            best, places = largest(products, count)
        scores, rows = np.concatenate([scores, best], axis=1), np.concatenate([rows, places + first], axis=1)
        if scores.shape[1] > count:
            scores, places = largest(scores, count)
            rows = np.take_along_axis(rows, places, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)
