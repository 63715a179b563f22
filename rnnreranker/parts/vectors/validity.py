"""Vectors on disk by docid: what every source of them checks of what it is asked and of what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.given import count_of, instance_of
from rnnreranker.parts.vectors.ids import Ids


class Reopened:
    """What another process opens itself. `opened`: a function and its arguments for that; None = it is sent there."""

    opened: tuple[Callable[..., Any], tuple[Any, ...]] | None = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        return super().__reduce_ex__(protocol) if self.opened is None else self.opened


class StoredVectors(Reopened, ABC):
    """A `VectorSource` of files; a subclass says how vectors are read and searched.

    Args:
        path: what errors name.
        ids: of the rows; None = the subclass looks docids up.
        dimension: of a vector.
    """

    exact = True
    fingerprint: str
    docids: Sequence[str]

    def __init__(self, path: Path, ids: Ids | None, dimension: int) -> None:
        self._path, self.dimension = path, dimension
        if ids is not None:
            self._ids, self.docids = ids, ids.names

    def rows(self, docids: Sequence[str]) -> np.ndarray:
        return self._ids.rows(docids)

    def fetch(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        rows, out = check_fetch(rows, out, len(self.docids), self.dimension)
        self._read(rows, out)
        check_finite(out, rows, self.docids, str(self._path))
        return out

    def search(
        self, queries: np.ndarray, hits: int, threads: int | None = None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        return self._best(*check_search(queries, hits, self.dimension), threads)

    @abstractmethod
    def _read(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Put the vectors of (n,) int64 rows into (n, d) float32; InputError: a row without a vector."""

    @abstractmethod
    def _best(self, queries: np.ndarray, hits: int, threads: int | None) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """As `search`, of queries that have been checked."""


def check_fetch(rows: np.ndarray, out: np.ndarray | None, count: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows as (n,) int64, all in 0..count-1, and a buffer (n, d) float32 in C order for their vectors."""
    rows = np.asarray(rows)
    if rows.ndim != 1 or (rows.dtype.kind not in "iu" and rows.size):
        raise InputError(f"rows have shape {rows.shape} and type {rows.dtype}; expected (n,) integers")
    rows = np.ascontiguousarray(rows, dtype=np.int64)
    if rows.size and rows.view(np.uint64).max() >= count:  # -1 is the largest of these
        bad = int(rows[(rows < 0) | (rows >= count)][0])
        hint = "; -1 stands for an unknown docid: leave those out" if bad == -1 else ""
        raise InputError(f"row {bad}: expected 0..{count - 1}{hint}")
    shape = (len(rows), dimension)
    if out is None:
        return rows, np.empty(shape, dtype=np.float32)
    instance_of(out, np.ndarray, "out")
    if out.shape != shape or out.dtype != np.float32 or not out.flags.c_contiguous:
        raise InputError(f"out has shape {out.shape} and type {out.dtype}; expected {shape} float32 in C order")
    return rows, out


def all_finite(vectors: np.ndarray) -> bool:
    """Whether no value of (n, d) float32 is NaN or infinite: by the sum of their squares, unless that is too large."""
    values = vectors.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.dot(values, values))) or bool(np.isfinite(values).all())


def check_finite(vectors: np.ndarray, rows: np.ndarray, docids: Sequence[str], path: str) -> None:
    """Look for NaN and infinity among vectors (n, d); InputError: with the first docid that has one."""
    if all_finite(vectors):
        return
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        docid = docids[int(rows[np.flatnonzero(~finite)[0]])]
        raise InputError(f"{path}: the vector of {docid} has NaN or infinite values; build the index again")


def check_search(queries: np.ndarray, hits: int, dimension: int) -> tuple[np.ndarray, int]:
    """The queries as (Q, d) float32 in C order, finite and of the index's dimension, and the hits, an int >= 1."""
    queries = np.asarray(queries)
    if queries.ndim != 2 or queries.shape[1] != dimension:
        raise InputError(
            f"query vectors have shape {queries.shape}, the index has {dimension} dimensions; expected "
            f"(queries, {dimension}): encode the queries with the encoder that made the index"
        )
    hits = count_of(hits, "hits")
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    finite = np.isfinite(queries).all(axis=1)
    if not finite.all():
        raise InputError(f"query vector {int(np.flatnonzero(~finite)[0])} has NaN or infinite values; encode it again")
    return queries, hits
