"""Stored vectors by docid: what every source checks, and how a matrix is read and searched."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError, count_of, instance_of
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.parts.vectors.exact import all_finite, by_blocks, exact_search
from rnnreranker.parts.vectors.ids import HasDocids, Ids

QUERIES = 256  # searched at a time
BLOCK = 2**27  # bytes of the matrix that a search turns into float32 at a time
READERS = 16  # a disk answers many requests at once; one thread waits for one page after the other
PART = 128  # rows that a reader takes at least
LARGE = 2**28  # bytes; what is smaller soon lies in memory, and threads cost more than they bring
Found = tuple[list[np.ndarray], list[np.ndarray]]  # scores (float64) and rows (int64) of every query


class MappedRows:
    """A matrix (n, d), perhaps memory-mapped.

    Reading first checks size and time of its file: a file that is overwritten in place gives wrong rows or ends the
    process. Several threads read rows from `LARGE` bytes on, and the system does not read ahead.
    """

    def __init__(self, matrix: np.ndarray) -> None:
        self._matrix, self.spread = matrix, matrix.nbytes >= LARGE
        self._path = getattr(matrix, "filename", None)
        self._opened: Any = self._path and _stamp(self._path)

    def __len__(self) -> int:
        return len(self._matrix)

    def take(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Copy (n,) int64 rows into (n, d) float32 `out` in C order; InputError: the file was overwritten since it
        was opened.
        """
        self._check()
        if len(rows) >= 2 * PART:
            self._advise("MADV_RANDOM")
        in_parts(lambda part: self._take(rows[part], out[part]), len(rows), self.spread)

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """(first row, (up to size, d) float32) of each block; InputError: as `take`."""
        self._advise("MADV_SEQUENTIAL")
        for first in range(0, len(self), size):
            self._check()
            block = self._matrix[first : first + size]
            of_bytes = block.dtype == np.uint8  # float32 at odd addresses
            yield first, np.array(block).view(np.float32) if of_bytes else np.asarray(block, np.float32)

    def _check(self) -> None:
        if self._path is None:
            return
        with contextlib.suppress(OSError):  # what is mapped stays when its name is gone
            now = _stamp(self._path)
            if now[0] == self._opened[0] and now != self._opened:
                raise InputError(
                    f"{self._path}: was written again while it was in use; open it again, and put a new file in its "
                    "place (write another name, then rename) rather than writing into it"
                )

    def _take(self, rows: np.ndarray, out: np.ndarray) -> None:
        matrix = self._matrix
        if not matrix.flags.c_contiguous:  # np.take would first copy all of it
            out[...] = matrix[rows]
        elif matrix.dtype == np.float16:
            out[...] = np.take(matrix, rows, axis=0, mode="clip")
        else:  # (n, 4 d) bytes if they are float32 at odd addresses, as Faiss writes them
            np.take(matrix, rows, axis=0, out=out.view(matrix.dtype), mode="clip")

    def _advise(self, advice: str) -> None:
        mapping, option = getattr(self._matrix, "_mmap", None), getattr(mmap, advice, None)
        if self.spread and mapping is not None and option is not None:
            mapping.madvise(option)


def in_parts(read: Callable[[slice], None], count: int, spread: bool, most: int = 2**62) -> None:
    """Read `count` rows, by several threads from a large file (spread); read: takes a slice; most: rows at a time."""
    step = min(most, max(PART, -(-count // READERS)) if spread else max(count, 1))
    parts = [slice(first, first + step) for first in range(0, count, step)]
    for _ in _readers(os.getpid()).map(read, parts) if spread and len(parts) > 1 else map(read, parts):
        pass


@lru_cache(maxsize=1)
def _readers(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(READERS, thread_name_prefix="rnnreranker-reader")


def _stamp(path: Path) -> tuple[tuple[int, int], tuple[int, int]]:
    """Identity of a file; its size and time."""
    status = os.stat(path)
    return (status.st_dev, status.st_ino), (status.st_size, status.st_mtime_ns)


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
        matrix: np.ndarray | None = None,
        dimension: int = 0,
        files: Sequence[Path] = (),
        kind: str = "matrix",
    ) -> None:
        super().__init__(ids)
        self._path, self._files, self._kind = path, files, kind
        self._matrix: Any = None if matrix is None else MappedRows(matrix)
        self.dimension = dimension or (0 if matrix is None else int(matrix.shape[1]))
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
            bad = rows[(rows < 0) | (rows >= count)][0]
            raise InputError(f"row {bad}: expected 0..{count - 1}; leave out -1, which stands for an unknown docid")
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
        if not (finite := np.isfinite(queries).all(axis=1)).all():
            raise InputError(f"query vector {int(np.argmin(finite))} has NaN or infinite values; encode it again")
        return self._best(queries, hits, threads)

    def _read(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Copy the vectors of (n,) int64 rows into (n, d) float32; InputError: a row without a vector."""
        self._matrix.take(rows, out)

    def _best(self, queries: np.ndarray, hits: int, threads: int | None) -> Found:
        scores, rows = list[np.ndarray](), list[np.ndarray]()
        for first in range(0, len(queries), QUERIES):  # bounds the memory; results do not depend on it
            part = exact_search(queries[first : first + QUERIES], hits, self.docids, self._propose, self.fetch)
            scores += part[0]
            rows += part[1]
        return scores, rows

    def _propose(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        blocks = self._matrix.blocks(max(count, BLOCK // (4 * self.dimension)))
        return by_blocks(queries, count, blocks, self._check_finite)

    def _check_finite(self, rows: np.ndarray | int, vectors: np.ndarray) -> None:
        """Raise InputError for NaN or infinity in vectors (n, d) of rows, or from a row on, with its docid."""
        if not all_finite(vectors) and not (finite := np.isfinite(vectors).all(axis=1)).all():
            row = np.argmin(finite) + rows if isinstance(rows, int) else rows[np.argmin(finite)]
            raise InputError(
                f"{self._path}: the vector of {self.docids[int(row)]} has NaN or infinite values; build the index again"
            )
