"""The highest inner products of all pairs of documents, in which each pair is multiplied once.

Blocks of documents begin in any order and in several threads. A block is multiplied with itself and with the documents
that no block has begun, and puts products into the lists of both sides. Before it reads its own lists it waits for the
blocks that began earlier. Blocks that another process makes are not begun here.
"""

from __future__ import annotations

from concurrent.futures import Future
from threading import Lock

import numba
import numpy as np

from rnnreranker.parts.vectors import VectorSource
from rnnreranker.parts.vectors.exact import products_of

COLUMNS = 2048  # documents that a block is multiplied with at a time
LANES = 32  # products that are compared before one of them is looked at
TYPES = "void(f4[:,::1], i8[::1], i8[::1], b1, f4[:,::1], i4[:,::1])"

if numba.config.DISABLE_JIT:
    raise ImportError("NUMBA_DISABLE_JIT switches numba off")


@numba.njit(nogil=True)
def insert(product, row, scores, listed):  # type: ignore[no-untyped-def]
    """Put a product into a descending list, whose lowest is lost."""
    at = len(scores) - 1
    while at > 0 and scores[at - 1] < product:
        scores[at], listed[at] = scores[at - 1], listed[at - 1]
        at -= 1
    scores[at], listed[at] = product, row


@numba.njit(TYPES, nogil=True, cache=True)
def gather(products, rows, columns, both, scores, listed):  # type: ignore[no-untyped-def]
    """Put products into the lists of rows and, with `both`, of columns, if they are above the lowest there.

    products: (R, C); scores, listed: (N, width) products of each document, descending, and rows of the others.
    """
    count, last = products.shape[1], scores.shape[1] - 1
    floors = np.full(count, np.float32(np.inf))
    if both:
        for j in range(count):
            floors[j] = scores[columns[j], last]
    for i in range(len(rows)):
        for first in range(0, count, LANES):
            strip, floor = range(np.uint64(first), np.uint64(min(first + LANES, count))), scores[rows[i], last]
            above = np.int32(0)
            for j in strip:
                above += np.int32(products[i, j] > floor) + np.int32(products[i, j] > floors[j])
            if above:
                for j in strip:
                    if products[i, j] > scores[rows[i], last]:
                        insert(products[i, j], columns[j], scores[rows[i]], listed[rows[i]])
                    if products[i, j] > floors[j]:
                        insert(products[i, j], rows[i], scores[columns[j]], listed[columns[j]])
                        floors[j] = scores[columns[j], last]


class Pairs:
    """A list of `width` products for each of N documents, 8 bytes a product."""

    def __init__(self, vectors: VectorSource, width: int) -> None:
        self._vectors, self.width, self._lock = vectors, width, Lock()
        shape = len(vectors.docids), width
        self._scores, self._rows = np.full(shape, -np.inf, dtype=np.float32), np.zeros(shape, dtype=np.int32)
        self._left = np.ones(shape[0], dtype=bool)  # documents that no block has begun
        self._begun: list[Future[None]] = []

    def highest(self, rows: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Products (R, width) float32, descending, and rows (R, width) int64 of a block; None if it was begun before.

        rows: (R,) different int64; vectors: theirs, (R, d) float32.
        """
        done = Future[None]()
        with self._lock:
            if not self._left[rows].all():
                return None
            self._left[rows] = False
            others, earlier = np.flatnonzero(self._left), self._begun.copy()
            self._begun.append(done)
        try:
            for columns in (rows, *(others[first : first + COLUMNS] for first in range(0, len(others), COLUMNS))):
                products = products_of(vectors, vectors if columns is rows else self._vectors.fetch(columns))
                with self._lock:
                    gather(products, rows, columns, columns is not rows, self._scores, self._rows)
        except BaseException as error:
            done.set_exception(error)
            raise
        done.set_result(None)
        for one in earlier:
            one.result()
        return self._scores[rows], self._rows[rows].astype(np.int64)
