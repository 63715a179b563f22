"""Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker
from rnnreranker.rnn.mixture import unit

ROUNDING = 1e-12  # products that differ by no more of their size are equal


@dataclass(frozen=True)
class MmrParams(Params):
    """Settings of maximal marginal relevance.

    >>> MmrParams().lam
    0.5
    """

    lam: float = setting(
        0.5,
        "lambda: weight of relevance, 1 - lambda of dissimilarity to what stands above",
        at_least=0,
        at_most=1,
    )
    context: int = context_setting()


class MmrReranker(Reranker):
    """Marginal relevance of each candidate: see `marginal`. Relevance is the run's score.

    Relevance and similarity are mapped to [0, 1] among the candidates, so scales do not count.
    """

    name = "mmr"
    needs = frozenset({"run scores", "vectors"})
    Params = MmrParams
    params: MmrParams

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        relevance = unit(candidates.scores[None], len(candidates.scores))[0]
        taken, values = marginal(relevance, similarities(candidates.vectors), self.params.lam)
        scores = np.empty(len(values))
        scores[taken] = falling(values)
        return scores


def similarities(vectors: np.ndarray) -> np.ndarray:
    """(n, n) float64: inner products mapped so that the lowest of two candidates is 0 and the highest 1.

    All 0 if they are equal, else 1 on the diagonal. vectors: (n, d) float32.

    >>> similarities(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])).tolist()  # products 1, 0, 1
    [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    rows = vectors.astype(np.float64)
    products = rows @ rows.T
    n = len(rows)
    others = products.reshape(-1)[1:].reshape(max(n - 1, 0), n + 1)[:, :-1]  # all but the diagonal
    low, high = (others.min(), others.max()) if others.size else (0.0, 0.0)
    if high - low <= ROUNDING * max(-low, high):
        return np.zeros(products.shape)
    products -= low
    products /= high - low
    np.minimum(np.maximum(products, 0.0, out=products), 1.0, out=products)
    mapped = products.astype(np.float32).astype(np.float64)  # products of equal vectors are equal
    mapped.reshape(-1)[:: n + 1] = 1.0
    return mapped


def marginal(relevance: np.ndarray, similarity: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
    """The candidates in the order in which they are taken, (n,) int64, and their values at that time, (n,) float64.

    The next is argmax over i not taken of lambda rel(i) - (1 - lambda) max over j taken of sim(i, j) (Section 2); ties:
    the earlier.

    relevance: (n,) float64; similarity: (n, n) float64, >= 0; weight: lambda, in [0, 1].

    >>> alike = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # the first two are one document
    >>> taken, values = marginal(np.array([1.0, 0.8, 0.0]), alike, 0.5)
    >>> taken.tolist(), values.tolist()
    ([0, 2, 1], [0.5, 0.0, -0.09999999999999998])
    """
    n = len(relevance)
    taken: list[int] = []
    values: list[float] = []
    worth = weight * relevance
    beside = list(worth - (1.0 - weight) * similarity)  # what each is worth at most once one of them is taken
    for _ in range(n):
        chosen = int(worth.argmax())
        taken.append(chosen)
        values.append(worth.item(chosen))
        worth[chosen] = -np.inf
        np.minimum(worth, beside[chosen], out=worth)
    return np.array(taken, dtype=np.int64), np.array(values, dtype=np.float64)


def falling(values: np.ndarray) -> np.ndarray:
    """(n,) float64: non-increasing values, lowered just enough to decrease strictly.

    >>> falling(np.array([1.0, 1.0, 0.5])).tolist()
    [1.0, 0.9999999999999999, 0.5]
    """
    if (values[1:] < values[:-1]).all():
        return values
    lowered = values.tolist()
    for rank in range(1, len(lowered)):
        lowered[rank] = min(lowered[rank], math.nextafter(lowered[rank - 1], -math.inf))
    return np.array(lowered)
