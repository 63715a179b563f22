"""Graph-based adaptive reranking (MacAvaney, Tonellotto and Macdonald, CIKM 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.expand.base import Expander, GraphCandidates
from rnnreranker.methods.expand.neighbours import K_HELP

AT_ONCE = 128  # documents whose neighbours are read, of small batches too
FULL_BUDGET = 1000  # that of the published batch size


@dataclass(frozen=True)
class GarParams(Params):
    """Settings of adaptive reranking; the defaults are those of pyterrier_dr."""

    k: int = setting(16, K_HELP, at_least=1)
    budget: int = setting(
        FULL_BUDGET,
        "documents of a query that are scored; candidates that are not follow below them",
        at_least=1,
    )
    batch: int = setting(128, "documents scored in turn, of a budget of 1000; scaled to others", at_least=1)


class GarExpander(Expander):
    """Scores batches of candidates and of neighbours of the best documents in turn, until the budget is spent.

    A score is the inner product of query and document. Batches of the run and of the frontier alternate: unscored
    neighbours of scored documents, by their scores, nearest first. If one is empty, the other continues. Unscored
    candidates follow below.
    """

    name = "gar"
    needs = frozenset({"neighbours", "vectors", "query vectors"})
    Params = GarParams
    params: GarParams

    def brought(self, candidates: GraphCandidates) -> tuple[np.ndarray, np.ndarray]:
        budget = self.params.budget
        batch = max(1, round(self.params.batch * budget / FULL_BUDGET))
        pool, from_run = candidates.known, True
        rows, scores = np.empty(0, dtype=np.int64), np.empty(0)
        while len(rows) < budget:
            size = min(batch, budget - len(rows))
            frontier = self._frontier(rows, scores, size) if not from_run or not len(pool) else pool[:0]
            chosen = frontier if len(frontier) else pool[:size]
            if not len(chosen):
                break
            rows = np.concatenate([rows, chosen])
            scores = np.concatenate([scores, self.products(candidates.query, chosen)])
            pool = pool[~np.isin(pool, chosen)]
            from_run = not from_run
        return rows, scores

    def _frontier(self, rows: np.ndarray, scores: np.ndarray, size: int) -> np.ndarray:
        """The first `size` unscored neighbours, those of the best documents first."""
        best = rows[np.lexsort((rows, -scores))]
        frontier = np.empty(0, dtype=np.int64)
        step = max(size, AT_ONCE)
        for first in range(0, len(best), step):
            near = self.graph.neighbours(best[first : first + step], self.params.k).ravel()
            frontier = np.concatenate([frontier, near[~np.isin(near, rows)]])
            frontier = frontier[np.sort(np.unique(frontier, return_index=True)[1])]  # each where it comes first
            if len(frontier) >= size:
                break
        return frontier[:size]
