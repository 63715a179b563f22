"""Graph-based adaptive reranking (MacAvaney, Tonellotto and Macdonald, CIKM 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rnnreranker import settings
from rnnreranker.expand.base import Candidates, Expander
from rnnreranker.expand.neighbours import K_HELP
from rnnreranker.settings import setting

FULL_BUDGET = 1000  # that of the published batch size
BUDGET_HELP = "gar: documents of a query that are scored, what is not follows below them; ladr: the best that are kept"


@dataclass(frozen=True)
class GarParams(settings.Params):
    """Settings of adaptive reranking; the defaults are those of pyterrier_dr."""

    expand_k: int = setting(16, K_HELP, at_least=1)
    expand_hits: int = setting(FULL_BUDGET, BUDGET_HELP, at_least=1)
    gar_batch: int = setting(128, "documents scored in turn, of --expand-hits 1000; scaled to others", at_least=1)


class GarExpander(Expander):
    """Scores candidates and neighbours of what scored best in turn, a batch of each, until the budget is spent.

    A score is the inner product of query and document. The first batch is of the run, the second of the frontier: the
    neighbours, so far without a score, of documents with one, in the order of these documents' scores and nearest
    first; and so on. Where one of the two is empty, the other goes on. Documents stand by their scores, candidates for
    which the budget did not last below them.
    """

    name: ClassVar[str] = "gar"
    needs: ClassVar[frozenset[str]] = frozenset({"neighbours", "vectors", "query vectors"})
    Params: ClassVar[type[settings.Params]] = GarParams
    params: GarParams

    def brought(self, candidates: Candidates) -> tuple[np.ndarray, np.ndarray]:
        """Rows and inner products of everything that was scored."""
        budget = self.params.expand_hits
        batch = max(1, round(self.params.gar_batch * budget / FULL_BUDGET))
        pool, scored = candidates.known.tolist(), dict[int, float]()
        from_run = True
        while len(scored) < budget:
            size = min(batch, budget - len(scored))
            waiting = [row for row in pool if row not in scored]
            frontier = self._frontier(scored, size) if not from_run or not waiting else []
            chosen = frontier if frontier else waiting[:size]
            if not chosen:
                break
            scored |= zip(chosen, self.products(candidates.query, np.array(chosen)).tolist(), strict=True)
            from_run = not from_run
        return np.array(list(scored), dtype=np.int64), np.array(list(scored.values()), dtype=np.float64)

    def _frontier(self, scored: dict[int, float], size: int) -> list[int]:
        """The first `size` neighbours without a score, those of the best documents first."""
        best = np.array(sorted(scored, key=lambda row: (-scored[row], row)), dtype=np.int64)
        found = dict[int, None]()
        for first in range(0, len(best), size):
            for row in self.graph.neighbours(best[first : first + size], self.params.expand_k).ravel().tolist():
                if row not in scored:
                    found[row] = None
            if len(found) >= size:
                break
        return list(found)[:size]
