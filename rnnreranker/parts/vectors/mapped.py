"""Rows of memory-mapped matrices, one or several in a row, read without loading them."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.parts.vectors.npy_files import map_array

READERS = 16  # a disk answers many requests at once; one thread waits for one page after the other
PART = 128  # rows that a reader takes at least
LARGE = 2**28  # bytes; what is smaller soon lies in memory, and threads cost more than they bring


def map_matrix(path: Path) -> np.ndarray:
    """(n, d) float32 or float16, memory-mapped; InputError: not a whole `.npy` file, or another shape or type."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected a .npy matrix of shape (rows, dimensions)")
    matrix = map_array(path)
    if matrix.ndim != 2 or matrix.dtype not in (np.float32, np.float16):
        raise InputError(
            f"{path}: has shape {matrix.shape} and type {matrix.dtype}; expected (rows, dimensions) float32 or float16"
        )
    if 0 in matrix.shape:
        raise InputError(f"{path}: has shape {matrix.shape}; expected at least one row and one dimension")
    return matrix


class MappedRows:
    """Matrices (n_i, d) of the same width and type as one: the rows of the second follow those of the first.

    Reading first checks size and time of the files: a file that is overwritten in place gives wrong rows or ends the
    process.

    Args:
        large: bytes from which several threads read rows, and the system does not read ahead.
    """

    def __init__(self, matrices: Sequence[np.ndarray], large: int = LARGE) -> None:
        self.matrices = list(matrices)
        self.starts = np.concatenate([[0], np.cumsum([len(matrix) for matrix in self.matrices])])
        self.dimension = int(self.matrices[0].shape[1])
        self.spread = sum(matrix.nbytes for matrix in self.matrices) >= large
        self._opened = {path: _stamp(path) for path in (getattr(one, "filename", None) for one in matrices) if path}

    def __len__(self) -> int:
        return int(self.starts[-1])

    def take(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Copy (n,) int64 rows into (n, d) float32 `out` in C order; InputError: a file was overwritten since it was
        opened.
        """
        self._check()
        if not self.spread or len(rows) < 2 * PART:
            self._take(rows, out)
            return
        self._advise("MADV_RANDOM")
        in_parts(lambda part: self._take(rows[part], out[part]), len(rows), True)

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """(first row, (up to size, d) float32) of each block; InputError: as `take`."""
        self._advise("MADV_SEQUENTIAL")
        for start, matrix in zip(self.starts.tolist(), self.matrices, strict=False):
            for first in range(0, len(matrix), size):
                self._check()
                block = matrix[first : first + size]
                of_bytes = block.dtype == np.uint8  # float32 at odd addresses
                yield start + first, np.array(block).view(np.float32) if of_bytes else np.asarray(block, np.float32)

    def _check(self) -> None:
        for path, opened in self._opened.items():
            now = _stamp(path)
            if now != opened and now[:2] == opened[:2]:
                raise InputError(
                    f"{path}: was written again while it was in use; open it again, and put a new file in its place "
                    "(write another name, then rename) rather than writing into it"
                )

    def _take(self, rows: np.ndarray, out: np.ndarray) -> None:
        if len(self.matrices) == 1:
            _gather(self.matrices[0], rows, out)
            return
        owners = np.searchsorted(self.starts, rows, side="right") - 1
        for owner in np.unique(owners).tolist():
            mine = np.flatnonzero(owners == owner)
            taken = np.empty((len(mine), self.dimension), dtype=np.float32)
            _gather(self.matrices[owner], rows[mine] - self.starts[owner], taken)
            out[mine] = taken

    def _advise(self, advice: str) -> None:
        option = getattr(mmap, advice, None)
        for matrix in self.matrices:
            mapping = getattr(matrix, "_mmap", None)
            if option is not None and self.spread and mapping is not None:
                mapping.madvise(option)


def in_parts(read: Callable[[slice], None], count: int, spread: bool, most: int | None = None) -> None:
    """Read `count` rows, by several threads from a large file (spread); read: takes a slice; most: rows at a time."""
    most = most or max(count, 1)
    step = min(most, max(PART, -(-count // READERS))) if spread else most
    parts = [slice(first, first + step) for first in range(0, count, step)]
    for _ in map(read, parts) if len(parts) == 1 or not spread else _readers(os.getpid()).map(read, parts):
        pass


@lru_cache(maxsize=1)
def _readers(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(READERS, thread_name_prefix="rnnreranker-reader")


def _stamp(path: Path) -> tuple[int, ...]:
    """Identity, size and time of a file; zeros if it is gone."""
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _gather(matrix: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    if matrix.dtype == np.uint8:  # float32 at odd addresses, as Faiss writes them: (n, 4 d) bytes
        np.take(matrix, rows, axis=0, out=out.view(np.uint8), mode="clip")
    elif not matrix.flags.c_contiguous:  # np.take would first copy all of it
        out[...] = matrix[rows]
    elif matrix.dtype == np.float32:
        np.take(matrix, rows, axis=0, out=out, mode="clip")
    else:
        out[...] = np.take(matrix, rows, axis=0, mode="clip")
