"""The nearest other documents of every document, exactly, in blocks of rows that depend on nothing but themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.vectors import VectorSource
from rnnreranker.vectors.exact import exact_search

COLUMNS = 8192  # documents that a block of rows is compared with at a time
LARGEST = float(np.finfo(np.float16).max)
ENTRY = np.dtype([("edge", "<u4"), ("weight", "<f2")])


def nearest_of(source: VectorSource, rows: np.ndarray, k: int) -> np.ndarray:
    """(R, k) of `ENTRY`: of every row the k other documents of the largest inner products, ties by the lower row.

    The order is that of inner products summed in one way in float64, so that it depends neither on the rows beside
    one another nor on threads; weights are these products, as float16.

    Args:
        source: N vectors.
        rows: (R,) int64, in 0..N - 1.
        k: in 1..N - 1.

    Raises:
        InputError: NaN or infinite vectors, an inner product that float16 cannot hold.
    """
    count = len(source.docids)

    def propose(queries: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        return _largest(queries, _blocks(source, max(COLUMNS, wanted)), wanted)

    scores, found = exact_search(source.fetch(rows), k + 1, range(count), propose, source.fetch)  # type: ignore[arg-type]
    entries = np.empty((len(rows), k), dtype=ENTRY)
    for place, row in enumerate(rows.tolist()):
        others = np.flatnonzero(found[place] != row)[:k]  # of k + 1, the row itself or the last falls out
        entries["edge"][place] = found[place][others]
        with np.errstate(over="ignore"):
            entries["weight"][place] = scores[place][others]
    beyond = ~np.isfinite(entries["weight"])
    if beyond.any():
        docid = source.docids[int(rows[np.flatnonzero(beyond.any(axis=1))[0]])]
        raise InputError(
            f"the inner products of {docid} with its neighbours are beyond {LARGEST:g}, the largest that a graph "
            "holds; make the vectors shorter, as with --l2-norm"
        )
    return entries


def _blocks(source: VectorSource, size: int) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, (up to size, d) float32) from the first row to the last."""
    count = len(source.docids)
    for first in range(0, count, size):
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
