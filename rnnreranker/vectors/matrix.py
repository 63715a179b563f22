"""Vectors in a memory-mapped `.npy` matrix with a file of ids beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.files import fingerprint
from rnnreranker.vectors.checks import check_fetch, check_finite, check_search, sample
from rnnreranker.vectors.exact import exact_search
from rnnreranker.vectors.ids import read_ids

QUERIES = 256  # searched at a time
BLOCK = 2**27  # bytes of the matrix that a search turns into float32 at a time


def map_matrix(path: Path) -> np.ndarray:
    """(n, d) float32 or float16, memory-mapped read-only.

    Raises:
        InputError: no such file, not a whole `.npy` file, or another shape or type.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected a .npy matrix of shape (rows, dimensions)")
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{path}: not a whole .npy file ({error}); write or copy it again") from None
    if matrix.ndim != 2 or matrix.dtype not in (np.float32, np.float16):
        raise InputError(
            f"{path}: has shape {matrix.shape} and type {matrix.dtype}; expected (rows, dimensions) float32 or float16"
        )
    if 0 in matrix.shape:
        raise InputError(f"{path}: has shape {matrix.shape}; expected at least one row and one dimension")
    return matrix


class MatrixVectors:
    """A `VectorSource` over a `.npy` matrix.

    Args:
        path: the matrix, (n, d) float32 or float16.
        ids: the file with n docids, one a line.

    Raises:
        InputError: files that are missing, cut short, of the wrong kind, or of different lengths.
    """

    exact = True

    def __init__(self, path: Path, ids: Path) -> None:
        self._matrix = map_matrix(path)
        if not ids.is_file():
            raise InputError(f"{ids}: no such file; {path} needs its {len(self._matrix)} docids there, one a line")
        self._path = path
        self._ids = read_ids(ids)
        self.docids: Sequence[str] = self._ids.names
        self.dimension = self._matrix.shape[1]
        if len(self.docids) != len(self._matrix):
            raise InputError(
                f"{ids}: has {len(self.docids)} docids but {path} has {len(self._matrix)} rows; expected as many"
            )
        self.fingerprint = fingerprint("matrix", sample(path), sample(ids))

    def rows(self, docids: Sequence[str]) -> np.ndarray:
        """(n,) int64: the row of each docid, -1 where the docid is unknown."""
        return self._ids.rows(docids)

    def fetch(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """(n, d) float32: the vectors of the given rows, into `out` when it is given.

        Raises:
            InputError: a row out of range, an `out` of another shape or type, NaN or infinite values.
        """
        rows, out = check_fetch(rows, out, len(self.docids), self.dimension)
        if self._matrix.dtype == np.float32:
            np.take(self._matrix, rows, axis=0, out=out, mode="clip")
        else:
            out[...] = np.take(self._matrix, rows, axis=0, mode="clip")
        check_finite(out, rows, self.docids, str(self._path))
        return out

    def search(
        self, queries: np.ndarray, hits: int, threads: int | None = None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Scores (float64, non-increasing, ties by docid) and rows (int64) of the `hits` best documents of every query.

        Args:
            queries: (Q, d) float32; the score is the inner product.
            hits: documents per query; all of them when there are fewer.
            threads: not used here: the matrix product takes the threads that numpy's BLAS is set to.

        Raises:
            InputError: queries of another dimension, hits < 1, NaN or infinite values.
        """
        queries = check_search(queries, hits, self.dimension)
        scores: list[np.ndarray] = []
        rows: list[np.ndarray] = []
        for first in range(0, len(queries), QUERIES):  # bounds the memory; results do not depend on it
            part = exact_search(queries[first : first + QUERIES], hits, self.docids, self._propose, self.fetch)
            scores += part[0]
            rows += part[1]
        return scores, rows

    def _propose(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The best `count` rows of every query by float32 products, block by block."""
        step = max(count, BLOCK // (4 * self.dimension))
        scores = np.empty((len(queries), 0), dtype=np.float32)
        rows = np.empty((len(queries), 0), dtype=np.int64)
        for first in range(0, len(self._matrix), step):
            block = np.asarray(self._matrix[first : first + step], dtype=np.float32)
            products = queries @ block.T  # (Q, block)
            if not np.isfinite(products).all():
                check_finite(block, np.arange(first, first + len(block)), self.docids, str(self._path))
            numbers = np.broadcast_to(np.arange(first, first + len(block)), products.shape)
            scores = np.concatenate([scores, products], axis=1)
            rows = np.concatenate([rows, numbers], axis=1)
            if scores.shape[1] > count:
                best = np.argpartition(-scores, count - 1, axis=1)[:, :count]
                scores, rows = np.take_along_axis(scores, best, axis=1), np.take_along_axis(rows, best, axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")
        return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)
