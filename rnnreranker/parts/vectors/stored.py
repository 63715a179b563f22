"""Stored vectors by docid: what every source checks, and how a matrix is read and searched."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.base.given import count_of, instance_of
from rnnreranker.parts.vectors.exact import all_finite, by_blocks, exact_search
from rnnreranker.parts.vectors.ids import HasDocids, Ids
from rnnreranker.parts.vectors.matrix_files import MappedRows

QUERIES = 256  # searched at a time
BLOCK = 2**27  # bytes of the matrix that a search turns into float32 at a time
Found = tuple[list[np.ndarray], list[np.ndarray]]  # scores (float64) and rows (int64) of every query


class VectorSource(HasDocids):
    """Vectors of documents by docid: rows of a matrix. A subclass reads and searches something else.

    Args:
        path: for errors; ids: of the rows.
        matrix: float32, float16, or bytes of float32; None = the subclass reads the rows.
        dimension: of a vector; 0 = the width of the matrix.
        files: of the fingerprint; the last one has the docids. kind: of these files.

    Attributes:
        docids: row → docid; dimension: of a vector; exact: False if the stored vectors are lossy (PQ, SQ8).
    """

    exact = True

    def __init__(
        self,
        path: Path,
        ids: Ids,
        matrix: MappedRows | None = None,
        dimension: int = 0,
        files: Sequence[Path] = (),
        kind: str = "matrix",
    ) -> None:
        super().__init__(ids)
        self._path, self._matrix, self._files, self._kind = path, matrix, files, kind
        self.dimension = dimension or (matrix.dimension if matrix is not None else 0)
        if matrix is not None and len(self.docids) != len(matrix):
            raise InputError(
                f"{files[-1]}: has {len(self.docids)} docids but {path} has {len(matrix)} rows; expected as many"
            )

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self._kind, *map(file_digest, self._files))

    def fetch(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """(n, d) float32: the vectors of rows, in `out` if it is given.

        Raises:
            InputError: a row out of range or without a vector, an `out` of another shape or type, NaN or infinite
                values.
        """
        rows, count = np.asarray(rows), len(self.docids)
        if rows.ndim != 1 or (rows.dtype.kind not in "iu" and rows.size):
            raise InputError(f"rows have shape {rows.shape} and type {rows.dtype}; expected (n,) integers")
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        if rows.size and rows.view(np.uint64).max() >= count:  # -1 is the largest of these
            bad = int(rows[(rows < 0) | (rows >= count)][0])
            hint = "; -1 stands for an unknown docid: leave those out" if bad == -1 else ""
            raise InputError(f"row {bad}: expected 0..{count - 1}{hint}")
        shape = (len(rows), self.dimension)
        out = np.empty(shape, dtype=np.float32) if out is None else instance_of(out, np.ndarray, "out")
        if out.shape != shape or out.dtype != np.float32 or not out.flags.c_contiguous:
            raise InputError(f"out has shape {out.shape} and type {out.dtype}; expected {shape} float32 in C order")
        self._read(rows, out)
        self._check_finite(rows, out)
        return out

    def search(self, queries: np.ndarray, hits: int, threads: int | None = None) -> Found:
        """Scores (float64, non-increasing, ties by docid) and rows (int64) of the best documents of every query.

        Args:
            queries: (Q, d) float32; the score is the inner product.
            hits: documents a query, at most; an approximate index may return fewer.
            threads: None = the library's default; results do not depend on it.

        Raises:
            InputError: queries of another dimension, hits < 1, NaN or infinite values.
        """
        queries = np.asarray(queries)
        if queries.ndim != 2 or queries.shape[1] != self.dimension:
            raise InputError(
                f"query vectors have shape {queries.shape}, the index has {self.dimension} dimensions; expected "
                f"(queries, {self.dimension}): encode the queries with the encoder that made the index"
            )
        hits = count_of(hits, "hits")
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        finite = np.isfinite(queries).all(axis=1)
        if not finite.all():
            raise InputError(f"query vector {int(np.argmin(finite))} has NaN or infinite values; encode it again")
        return self._best(queries, hits, threads)

    def _read(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Copy the vectors of (n,) int64 rows into (n, d) float32; InputError: a row without a vector."""
        assert self._matrix is not None
        self._matrix.take(rows, out)

    def _best(self, queries: np.ndarray, hits: int, threads: int | None) -> Found:
        scores: list[np.ndarray] = []
        rows: list[np.ndarray] = []
        for first in range(0, len(queries), QUERIES):  # bounds the memory; results do not depend on it
            part = exact_search(queries[first : first + QUERIES], hits, self.docids, self._propose, self.fetch)
            scores += part[0]
            rows += part[1]
        return scores, rows

    def _propose(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        assert self._matrix is not None
        blocks = self._matrix.blocks(max(count, BLOCK // (4 * self.dimension)))
        return by_blocks(
            queries, count, blocks, lambda first, block: self._check_finite(np.arange(first, first + len(block)), block)
        )

    def _check_finite(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        """Raise InputError for NaN or infinity in vectors (n, d) of rows, with its docid."""
        if not all_finite(vectors) and not (finite := np.isfinite(vectors).all(axis=1)).all():
            docid = self.docids[int(rows[np.argmin(finite)])]
            raise InputError(f"{self._path}: the vector of {docid} has NaN or infinite values; build the index again")
