"""Reciprocal neighbours of the first candidates in the whole collection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.expand.base import Expander, GraphCandidates
from rnnreranker.runs.head import place_below

K_HELP = "neighbours of a document that count, at most those of the graph"
RANK_CONSTANT = 10.0


@dataclass(frozen=True)
class NeighboursParams(Params):
    """Settings of expansion by reciprocal neighbours."""

    k: int = setting(16, K_HELP, at_least=1)
    depth: int = setting(20, "first candidates, whose reciprocal neighbours join", at_least=1)
    below: int = setting(60, "candidates of the run that stay above those that join", at_least=1)


class NeighboursExpander(Expander):
    """Documents i with j in K(i) and i in K(j) for one of the first candidates j, below the run's first ones.

    They rank by the sum of their similarities to these candidates, each divided by 10 + its rank. Their scores fall in
    equal steps, by the mean step above in all.
    """

    name = "neighbours"
    Params = NeighboursParams
    params: NeighboursParams

    def brought(self, candidates: GraphCandidates) -> tuple[np.ndarray, np.ndarray]:
        first = candidates.rows[: self.params.depth]
        ranks = np.flatnonzero(first >= 0) + 1
        first = first[ranks - 1]
        k = self.params.k
        reciprocal = self.graph.reciprocal(first, k)
        weights = self.graph.similarities(first, k).astype(np.float64) / (RANK_CONSTANT + ranks)[:, None]
        rows, inverse = np.unique(self.graph.neighbours(first, k)[reciprocal], return_inverse=True)
        sums = np.bincount(inverse, weights=weights[reciprocal], minlength=len(rows))
        joining = ~np.isin(rows, candidates.rows[: self.above])
        rows, sums = rows[joining], sums[joining]
        rows = rows[np.argsort(-sums, kind="stable")]
        return rows, _steps_below(candidates.scores[: self.above], len(rows))


def _steps_below(scores: np.ndarray, count: int) -> np.ndarray:
    """(count,) float64 below the last of (n,) scores, in equal steps that together are the mean step above.

    >>> _steps_below(np.array([3.0, 2.0, 1.0]), 4).tolist()
    [0.75, 0.5, 0.25, 0.0]
    """
    last = float(scores[-1])
    mean = (float(scores[0]) - last) / max(len(scores) - 1, 1) or 1.0
    below = last - mean * np.arange(1, count + 1) / max(count, 1)
    falling = (np.diff(below, prepend=last) < 0).all()
    return below if falling else place_below(last, -np.arange(count, dtype=np.float64))
