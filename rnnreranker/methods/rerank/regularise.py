"""Score regularisation (Diaz 2007)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker


@dataclass(frozen=True)
class RegulariseParams(Params):
    """Settings of score regularisation; the defaults are neither published nor tuned."""

    alpha: float = setting(
        1.0,
        "alpha: weight of smoothness against closeness to the run's scores",
        at_least=0,
        at_most=1e6,  # beyond, the equations cannot be solved in float64
    )
    k: int = setting(10, "k: nearest neighbours that a candidate is linked with", at_least=1)
    context: int = context_setting()


class RegulariseReranker(Reranker):
    """f* of `regularised`, of the run's scores."""

    name = "regularise"
    needs = frozenset({"run scores", "vectors"})
    Params = RegulariseParams
    params: RegulariseParams

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        links = affinities(candidates.vectors, self.params.k)
        return regularised(candidates.scores, links, self.params.alpha)


def affinities(vectors: np.ndarray, k: int) -> np.ndarray:
    """W, (n, n) float64, symmetric, diagonal 0: the cosine of i and j if one is among the other's k nearest.

    Negative cosines and those of zero vectors count as 0. Ties: the earlier. vectors: (n, d) float32.

    >>> affinities(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]), 1).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    rows = vectors.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths > 0, lengths, 1.0)
    cosines = (rows @ rows.T).astype(np.float32).astype(np.float64)  # equal vectors have equal cosines
    np.fill_diagonal(cosines, -np.inf)
    order = np.argsort(-cosines, axis=1, kind="stable")[:, : min(k, len(rows) - 1)]
    linked = np.zeros(cosines.shape, dtype=bool)
    linked[np.arange(len(rows))[:, None], order] = True
    weights = np.where(linked, np.maximum(cosines, 0.0), 0.0)
    return np.maximum(weights, weights.T)


def regularised(scores: np.ndarray, weights: np.ndarray, alpha: float) -> np.ndarray:
    """f* = (I + alpha L)^-1 y, (n,) float64, which minimises |f - y|^2 + alpha f' L f.

    y: scores with mean 0 and variance 1 (0 if equal); L = I - D^-1/2 W D^-1/2 with D the row sums of W. A candidate
    without links keeps its y.

    scores: (n,) float64; weights: W, (n, n) float64; alpha >= 0.

    >>> regularised(np.array([2.0, 0.0]), np.array([[0.0, 0.5], [0.5, 0.0]]), 1.0).round(4).tolist()
    [0.3333, -0.3333]
    """
    from scipy.linalg import cho_factor, cho_solve

    spread = scores.std()
    y = (scores - scores.mean()) / spread if spread > 0 else np.zeros(len(scores))
    degrees = weights.sum(axis=1)
    linked = degrees > 0
    scale = np.where(linked, 1.0 / np.sqrt(np.where(linked, degrees, 1.0)), 0.0)
    laplacian = np.diag(linked.astype(np.float64)) - scale[:, None] * weights * scale
    solution: np.ndarray = cho_solve(cho_factor(np.eye(len(y)) + alpha * laplacian), y)
    return solution.round(12)  # beyond is rounding error, which would part equal documents
