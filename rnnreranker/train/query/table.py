"""The vectors of documents in one float16 table, gathered for a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import InputError

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import VectorSource

BLOCK = 8192  # rows fetched at a time
PAD = -1  # where a batch has no row
SPARSE = 16  # a table that many times longer than a batch has rows is not scanned


class VectorTable:
    """Vectors of documents in memory, (D, d) float16 (or float32), and a buffer that gathered vectors go to."""

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors = np.ascontiguousarray(vectors)
        self._buffer = np.empty((0, self.vectors.shape[1]), dtype=self.vectors.dtype)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dimension(self) -> int:
        """d, the length of a vector."""
        return int(self.vectors.shape[1])

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """(n, d) in the table's dtype: the vectors of rows, in a buffer that the next call overwrites.

        Args:
            rows: (n,) or (B, N) integers in [0, D); of another shape than (n,) they give (B * N, d).
        """
        flat = np.ravel(rows)
        if len(flat) > len(self._buffer):
            self._buffer = np.empty((len(flat), self.dimension), dtype=self.vectors.dtype)
        return np.take(self.vectors, flat, axis=0, out=self._buffer[: len(flat)], mode="clip")  # clip: no copy made

    def gather_distinct(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The vectors of the distinct rows, (U, d), and the position of every row among them, shape of `rows`.

        Padding (-1) points at position 0.
        """
        if SPARSE * rows.size < len(self):  # sorting the few is quicker than a look at the whole table
            distinct_rows, inverse = np.unique(rows, return_inverse=True)
            padded = int(len(distinct_rows) > 0 and distinct_rows[0] == PAD)
            return self.gather(distinct_rows[padded:]), np.maximum(inverse.reshape(rows.shape) - padded, 0)
        seen = np.zeros(len(self), dtype=bool)
        seen[rows[rows != PAD]] = True
        distinct = np.flatnonzero(seen)
        position_of = np.zeros(len(self) + 1, dtype=np.int64)  # the last entry is what PAD = -1 finds
        position_of[distinct] = np.arange(len(distinct))
        return self.gather(distinct), position_of[rows]


def load_table(source: VectorSource, rows: np.ndarray, dtype: str = "float16") -> VectorTable:
    """The table of the given rows of a source, in their order; InputError: a vector too large for float16."""
    vectors = np.empty((len(rows), source.dimension), dtype=dtype)
    for start in range(0, len(rows), BLOCK):
        fetched = source.fetch(rows[start : start + BLOCK])
        if dtype == "float16" and np.abs(fetched).max(initial=0) > np.finfo(np.float16).max:
            raise InputError("document vectors have values beyond 65504, too large for float16; scale them down")
        vectors[start : start + BLOCK] = fetched
    return VectorTable(vectors)
