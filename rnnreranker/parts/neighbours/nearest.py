"""The nearest other documents by inner products of vectors, exactly; a block of rows depends on nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.parts.neighbours.highest import Highest, multiplied
from rnnreranker.parts.vectors import VectorSource, open_vectors
from rnnreranker.parts.vectors.exact import exact_search, inner_products, rounding

COLUMNS = 8192  # documents that a block of rows is compared with at a time
AT_ONCE = 2**21  # products made at a time, where they are not too few for a list
SPARE = 9  # documents proposed beyond a list and the document itself


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

    def nearest(
        self, rows: np.ndarray, k: int, first: int = 0, proposed: tuple[np.ndarray, np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `GraphSource`.

        Args:
            rows, k, first: as there.
            proposed: the k + 1 + SPARE highest float32 products of every row, or more, or all, from the highest on, and
                their rows, where they are known; products that are not so exact are none below the true ones.

        Raises:
            InputError: NaN or infinite vectors.
        """
        count = len(self.docids) - first

        def propose(queries: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
            if proposed is not None and len(proposed[0]) == len(queries) and proposed[0].shape[1] >= wanted:
                return proposed
            if wanted >= count:  # all are settled
                shape = len(queries), count
                return np.zeros(shape, dtype=np.float32), np.broadcast_to(np.arange(count), shape)
            highest = Highest.empty(len(queries), wanted, len(queries) * count)
            step = max(wanted, min(COLUMNS, AT_ONCE // max(1, len(queries))))
            for start in range(first, first + count, step):
                rows = np.arange(start, min(start + step, first + count))
                with one_blas_thread():
                    products = multiplied(queries, self.vectors.fetch(rows))
                highest.offer(products, start - first)
            return highest.best()

        def fetch(positions: np.ndarray) -> np.ndarray:
            return self.vectors.fetch(positions + first)

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

    def bounds(self, rows: np.ndarray, first: int) -> np.ndarray:
        """As `GraphSource`: the highest float32 product and what rounding may have taken from it."""
        own, bounds = self.vectors.fetch(rows), np.full(len(rows), -np.inf)
        for start in range(first, len(self.docids), COLUMNS):
            others = self.vectors.fetch(np.arange(start, min(start + COLUMNS, len(self.docids))))
            with one_blas_thread():
                products = multiplied(own, others).max(axis=1)
            bounds = np.maximum(bounds, products + rounding(own, others[None]))
        return bounds

    def similarities(self, rows: np.ndarray, edges: np.ndarray) -> np.ndarray:
        own = self.vectors.fetch(rows)
        return np.array([inner_products(one, self.vectors.fetch(line)) for one, line in zip(own, edges, strict=True)])


@lru_cache(maxsize=1)
def _opened(path: Path, mark: str) -> DenseNeighbours:
    """The vectors at a path, once in a process for as long as it is of them."""
    return DenseNeighbours(open_vectors(path), path)
