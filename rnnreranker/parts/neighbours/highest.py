"""The highest products of documents with others, gathered while blocks of both are multiplied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rnnreranker.parts.vectors.exact import largest
from rnnreranker.rnn.contexts import compiles

SAFE = 1e37  # sums of products below it fit float32
LOWEST = float(np.finfo(np.float32).min)
SMALL = 2**24  # products of a whole job that numpy goes through sooner than the kernel is loaded


def multiplied(vectors: np.ndarray, others: np.ndarray, room: np.ndarray | None = None) -> np.ndarray:
    """(R, C) float32: the products of (R, d) and (C, d), where those beyond float32 are the lowest, or infinite.

    What is infinite is settled in float64. room: where they may be put, at least R * C float32.
    """
    if room is not None:
        room = room[: len(vectors) * len(others)].reshape(len(vectors), len(others))
    with np.errstate(over="ignore", invalid="ignore"):
        products: np.ndarray = np.matmul(vectors, others.T, out=room)
        squares = [float(np.dot(values, values)) for values in (vectors.reshape(-1), others.reshape(-1))]
        if not squares[0] * squares[1] < SAFE**2:
            np.nan_to_num(products, copy=False, nan=np.inf, posinf=np.inf, neginf=LOWEST)
    return products


@dataclass(frozen=True)
class Highest:
    """The highest products of each of R documents, at most m of each, and whose they are.

    Attributes:
        scores: (R, m) float32, in no order, -inf where there are fewer; documents: (R, m) int32.
        held: (R,) int64, how many a list has; floors: (R,) float32, what is not above them is left out.
        compiled: whether products are gone through by the compiled scan; what is kept does not depend on it.
    """

    scores: np.ndarray
    documents: np.ndarray
    held: np.ndarray
    floors: np.ndarray
    compiled: bool

    @classmethod
    def empty(cls, rows: int, count: int, products: int, floors: np.ndarray | None = None) -> Highest:
        """Lists for `count` products of each of so many documents.

        Args:
            products: of the whole job; many are worth the compiled scan.
            floors: see above; None = nothing is left out.
        """
        scores = np.full((rows, count), -np.inf, dtype=np.float32)
        floors = np.full(rows, -np.inf, dtype=np.float32) if floors is None else floors
        documents, held = np.zeros((rows, count), dtype=np.int32), np.zeros(rows, dtype=np.int64)
        return cls(scores, documents, held, floors, products > SMALL and compiles())

    def of(self, rows: slice) -> Highest:
        """The lists of some of the documents, not copied."""
        return Highest(self.scores[rows], self.documents[rows], self.held[rows], self.floors[rows], self.compiled)

    def offer(self, products: np.ndarray, first: int, others: Highest | None = None, own_first: int = 0) -> None:
        """Products (R, C) of these documents, those from `own_first` on, with those from `first` on.

        Args:
            others: the highest of the last of those that they are multiplied with, to be offered these.
        """
        others = self.of(slice(0)) if others is None else others
        if self.compiled:
            _scan()(products, *self._lists(), first, *others._lists(), own_first)
            return
        self._join(products, first)
        others._join(products[:, products.shape[1] - len(others.held) :].T, own_first)

    def best(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores (R, m) float32, from the highest on, and documents (R, m) int64."""
        order = np.argsort(-self.scores, axis=1, kind="stable")
        documents = np.take_along_axis(self.documents, order, axis=1).astype(np.int64)
        return np.take_along_axis(self.scores, order, axis=1), documents

    def _lists(self) -> tuple[np.ndarray, ...]:
        return self.scores, self.documents, self.held, self.floors

    def _join(self, products: np.ndarray, first: int) -> None:
        """Offer (R, C) by NumPy."""
        count = self.scores.shape[1]
        scores, columns = largest(np.concatenate([self.scores, products], axis=1), count)
        numbers = np.broadcast_to(np.arange(first, first + products.shape[1], dtype=np.int32), products.shape)
        documents = np.take_along_axis(np.concatenate([self.documents, numbers], axis=1), columns, axis=1)
        self.scores[:], self.documents[:] = scores, documents


@lru_cache(maxsize=1)
def _scan() -> Any:
    """The compiled scan, imported where it is needed first."""
    from rnnreranker.parts.neighbours.scan import scan

    return scan
