"""Vectors in memory-mapped matrices with docids: `.npy` files, FlexIndex folders, and how their rows are read."""

from __future__ import annotations

import mmap
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import numpy as np

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.strict import read_json
from rnnreranker.parts.vectors.ids import Ids, read_ids
from rnnreranker.parts.vectors.npy_files import map_array

READERS = 16  # a disk answers many requests at once; one thread waits for one page after the other
PART = 128  # rows that a reader takes at least
LARGE = 2**28  # bytes; what is smaller soon lies in memory, and threads cost more than they bring
Stamp = tuple[int, ...]


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
    process. Several threads read rows from `LARGE` bytes on, and the system does not read ahead.
    """

    def __init__(self, matrices: Sequence[np.ndarray]) -> None:
        self.matrices = list(matrices)
        self.starts = np.concatenate([[0], np.cumsum([len(matrix) for matrix in matrices])])
        self.dimension = int(matrices[0].shape[1])
        self.spread = sum(matrix.nbytes for matrix in matrices) >= LARGE
        self._opened = {path: _stamp(path) for path in (getattr(one, "filename", None) for one in matrices) if path}

    def __len__(self) -> int:
        return int(self.starts[-1])

    def take(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Copy (n,) int64 rows into (n, d) float32 `out` in C order; InputError: a file was overwritten since it was
        opened.
        """
        self._check()
        if self.spread and len(rows) >= 2 * PART:
            self._advise("MADV_RANDOM")
        in_parts(lambda part: self._take(rows[part], out[part]), len(rows), self.spread)

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
        for matrix in self.matrices if option is not None and self.spread else ():
            if (mapping := getattr(matrix, "_mmap", None)) is not None:
                mapping.madvise(option)


def in_parts(read: Callable[[slice], None], count: int, spread: bool, most: int = 2**62) -> None:
    """Read `count` rows, by several threads from a large file (spread); read: takes a slice; most: rows at a time."""
    step = min(most, max(PART, -(-count // READERS))) if spread else min(most, max(count, 1))
    parts = [slice(first, first + step) for first in range(0, count, step)]
    for _ in _readers(os.getpid()).map(read, parts) if spread and len(parts) > 1 else map(read, parts):
        pass


@lru_cache(maxsize=1)
def _readers(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(READERS, thread_name_prefix="rnnreranker-reader")


def _stamp(path: Path) -> Stamp:
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


def npy_rows(paths: Sequence[Path]) -> MappedRows:
    """The rows of `.npy` matrices, (n, d) float32 or float16; InputError: as `map_matrix`, or not of one matrix."""
    matrices = [map_matrix(path) for path in paths]
    for path, matrix in zip(paths, matrices, strict=True):
        if (matrix.shape[1], matrix.dtype) != (matrices[0].shape[1], matrices[0].dtype):
            raise InputError(
                f"{path}: has {matrix.shape[1]} dimensions of {matrix.dtype}, {paths[0].name} has "
                f"{matrices[0].shape[1]} of {matrices[0].dtype}; expected shards of one matrix"
            )
    return MappedRows(matrices)


def flex_rows(path: Path) -> MappedRows:
    """The rows of a FlexIndex: raw float32 in `vecs.f4`, described by `pt_meta.json`.

    Raises:
        InputError: files that are missing, cut, or of different lengths.
    """
    about = path.with_name("pt_meta.json")
    meta = read_json(about, "description of a FlexIndex")
    if not isinstance(meta, dict) or type(meta.get("vec_size")) is not int:
        raise InputError(f"{about}: no vec_size; expected the description of a FlexIndex of pyterrier_dr")
    dimension, size = meta["vec_size"], path.stat().st_size
    if dimension < 1 or size == 0 or size % (4 * dimension):
        raise InputError(f"{path}: {size} bytes are no whole number of rows of {dimension} float32; copy it again")
    matrix = np.memmap(path, np.float32, "r", shape=(size // (4 * dimension), dimension))
    if (expected := meta.get("doc_count", len(matrix))) != len(matrix):
        raise InputError(f"{path}: has {len(matrix)} rows, pt_meta.json says {expected}; copy the folder again")
    return MappedRows([matrix])


def docnos_of(folder: Path) -> tuple[Ids, Path]:
    """The docids in a folder of PyTerrier's and their file: `docnos.npids`, or a file of lines.

    Raises:
        InputError, MissingDependencyError: no docids there; no package npids.
    """
    for name in ("docnos", "docnos.txt", "docid"):
        if (folder / name).is_file():
            return read_ids(folder / name), folder / name
    packed = folder / "docnos.npids"
    if not packed.is_file():
        raise InputError(f"{packed}: no such file; expected its docids there")
    npids = require("npids", f"reading {packed}", "npids")
    try:
        with warnings.catch_warnings(action="ignore"), npids.Lookup(str(packed)) as lookup:  # that it may be too new
            ids = Ids([str(name) for name in lookup.fwd], str(packed))
    except Exception as error:  # npids does not say what it raises on a file that is not its own
        raise InputError(
            f"{packed}: npids cannot read it ({' '.join(str(error).split())[:80]}); copy it again"
        ) from None
    ids.check()
    return ids, packed
