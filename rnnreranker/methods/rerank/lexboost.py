"""LexBoost (Kulkarni, Goharian, Frieder and MacAvaney, DocEng 2024)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker


@dataclass(frozen=True)
class LexboostParams(Params):
    """Settings of LexBoost; n = 16 is the paper's, lambda the middle of the range that it uses."""

    k: int = setting(16, "n of the paper: neighbours of a document, at most those of the graph", at_least=1)
    lam: float = setting(0.7, "lambda: weight of a document's own score", at_least=0, at_most=1)
    context: int = context_setting(1000)


class LexboostReranker(Reranker):
    """lambda s(d) + (1 - lambda) / n sum of s(e) over the n nearest documents e of d: see `boosted`.

    Raises:
        InputError: also for a graph with fewer neighbours than n.
    """

    name = "lexboost"
    needs = frozenset({"run scores", "neighbours"})
    Params = LexboostParams
    params: LexboostParams

    def prepare(self) -> None:
        self.graph.check_k("k", self.params.k)

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        near = self.graph.neighbours(candidates.rows, self.params.k)
        return boosted(candidates.scores, candidates.rows, near, self.params.lam)


def boosted(scores: np.ndarray, rows: np.ndarray, near: np.ndarray, weight: float) -> np.ndarray:
    """(n,) float64: weight s(d) + (1 - weight) times the mean of s over the k neighbours of d.

    A neighbour that is no candidate, and d itself, count 0 in the mean.

    scores: (n,) float64; rows: (n,) int64, distinct; near: (n, k) int64, rows of their neighbours; weight: in [0, 1].

    >>> boosted(np.array([4.0, 2.0]), np.array([7, 5]), np.array([[5, 9], [7, 8]]), 0.5).tolist()
    [2.5, 2.0]
    """
    order = np.argsort(rows)
    positions = order[np.minimum(np.searchsorted(rows, near, sorter=order), len(rows) - 1)]
    known = (rows[positions] == near) & (near != rows[:, None])
    means = np.where(known, scores[positions], 0.0).sum(axis=1) / near.shape[1]
    return weight * scores + (1.0 - weight) * means
