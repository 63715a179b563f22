"""k-reciprocal re-ranking of Zhong et al. (CVPR 2017); the query is the only probe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker


@dataclass(frozen=True)
class ZhongParams(Params):
    """Settings of Zhong et al., with their defaults.

    >>> ZhongParams().k1
    20
    """

    k1: int = setting(20, "k1: neighbours of an element, itself not counted", at_least=1)
    k2: int = setting(6, "k2: neighbours whose weights are averaged (1 = none)", at_least=1)
    lam: float = setting(0.3, "lambda: weight of the original distance, 1 - lambda of Jaccard", at_least=0, at_most=1)
    context: int = context_setting()


class ZhongReranker(Reranker):
    """-d*, d* = (1 - lambda) d_J + lambda d: see `zhong_distances`; d is the Euclidean distance."""

    name = "zhong"
    needs = frozenset({"query vectors", "vectors"})
    Params = ZhongParams
    params: ZhongParams

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        from scipy.spatial.distance import pdist, squareform

        rows = np.concatenate([query.vector[None], candidates.vectors]).astype(np.float64)
        distances = squareform(pdist(rows))  # differences, not inner products: equal vectors are at distance 0
        return -zhong_distances(distances, 1, self.params)[0][0]


def zhong_distances(distances: np.ndarray, queries: int, params: ZhongParams) -> tuple[np.ndarray, np.ndarray]:
    """The final and the Jaccard distance of Q queries to G gallery elements, both (Q, G) float64.

    Over all m = Q + G elements: distances are squared, rows divided by their maximum; R(i) = the elements among the k1
    + 1 nearest of i that have i among theirs, joined with the reciprocal set over round(k1 / 2) + 1 neighbours of each
    member that lies in R(i) by more than 2/3; V_ij = exp(-d_ij) over the members, rows divided by their sum, averaged
    over the k2 nearest; d_J = 1 - sum min(V_p, V_i) / sum max(V_p, V_i); d* = (1 - lambda) d_J + lambda d.

    distances: (m, m) float64, Euclidean, the queries first.

    >>> on_a_line = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    >>> zhong_distances(on_a_line, 1, ZhongParams(k1=1, k2=1, lam=1.0))[0].tolist()
    [[0.25, 1.0]]
    """
    squared = distances**2
    largest = squared.max(axis=0)
    distances = (squared / np.where(largest > 0, largest, 1.0)).T
    ranking = np.argsort(distances, axis=1, kind="stable")
    k1 = min(params.k1, len(ranking) - 1)
    members = _reciprocal(ranking[:, : k1 + 1])
    short = _reciprocal(ranking[:, : round(k1 / 2) + 1]).astype(np.float64)
    shared = members.astype(np.float64) @ short.T  # (i, j): |T_j & R(i)|, small integers, exact
    joins = members & (3 * shared > 2 * short.sum(axis=1))
    members |= joins.astype(np.float64) @ short > 0
    weights = np.where(members, np.exp(-distances), 0.0)
    sums = weights.sum(axis=1, keepdims=True)
    weights /= np.where(sums > 0, sums, 1.0)
    if params.k2 > 1:
        weights = weights[ranking[:, : params.k2]].mean(axis=1)
    jaccard = np.empty((queries, len(squared) - queries))
    for probe in range(queries):
        least = np.minimum(weights[probe], weights[queries:]).sum(axis=1)
        most = np.maximum(weights[probe], weights[queries:]).sum(axis=1)
        jaccard[probe] = 1.0 - least / np.where(most > 0, most, 1.0)
    return (1.0 - params.lam) * jaccard + params.lam * distances[:queries, queries:], jaccard


def _reciprocal(order: np.ndarray) -> np.ndarray:
    """(m, m) bool: whether i and j are in each other's list, (m, length)."""
    listed = np.zeros((len(order), len(order)), dtype=bool)
    listed[np.arange(len(order))[:, None], order] = True
    return listed & listed.T
