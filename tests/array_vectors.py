"""Vectors in memory, as rerankers take those of an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class ArrayVectors:
    """A VectorSource over an array; documents without names are d0, d1, …"""

    exact = True
    fingerprint = "array"

    def __init__(self, vectors: np.ndarray, docids: Sequence[str] | None = None) -> None:
        self.vectors = vectors
        self.docids: Sequence[str] = [f"d{row}" for row in range(len(vectors))] if docids is None else docids
        self.dimension = vectors.shape[1]

    def rows(self, docids: Sequence[str]) -> np.ndarray:
        places = {docid: row for row, docid in enumerate(self.docids)}
        return np.array([places.get(docid, -1) for docid in docids], dtype=np.int64)

    def fetch(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        found: np.ndarray = self.vectors[rows].astype(np.float32)
        if out is None:
            return found
        out[:] = found
        return out

    def search(self, queries: np.ndarray, hits: int, threads: int | None = None) -> Any:
        raise AssertionError("nothing is searched here")
