"""Lexically accelerated dense retrieval (Kulkarni, MacAvaney, Goharian and Frieder, SIGIR 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rnnreranker import settings
from rnnreranker.expand.base import Candidates, Expander
from rnnreranker.expand.gar import BUDGET_HELP
from rnnreranker.expand.neighbours import K_HELP
from rnnreranker.settings import setting


@dataclass(frozen=True)
class LadrParams(settings.Params):
    """Settings of LADR; the defaults are those of pyterrier_dr."""

    expand_k: int = setting(16, K_HELP, at_least=1)
    expand_hits: int = setting(1000, BUDGET_HELP, at_least=1)
    ladr: Literal["proactive", "adaptive"] = setting(
        "proactive", "proactive: all neighbours of all candidates; adaptive: those of the best, until no new one comes"
    )
    ladr_hops: int = setting(1, "of proactive: how often neighbours of what was found are added", at_least=1)
    ladr_depth: int = setting(100, "of adaptive: the best documents, whose neighbours are added", at_least=1)


class LadrExpander(Expander):
    """Dense retrieval among the candidates of the run and their neighbours; scores are inner products.

    Proactive takes all candidates and the neighbours that are so many hops away. Adaptive adds the neighbours of the
    best documents, scores them, and does so again until the best have no neighbour without a score.
    """

    name: ClassVar[str] = "ladr"
    needs: ClassVar[frozenset[str]] = frozenset({"neighbours", "vectors", "query vectors"})
    Params: ClassVar[type[settings.Params]] = LadrParams
    params: LadrParams

    @property
    def hits(self) -> int:
        """The best of them are kept."""
        return self.params.expand_hits

    def brought(self, candidates: Candidates) -> tuple[np.ndarray, np.ndarray]:
        """Rows and inner products of everything that was looked at."""
        rows = np.unique(candidates.known)
        if self.params.ladr == "proactive":
            last = rows
            for _ in range(self.params.ladr_hops):
                last = np.setdiff1d(self.graph.neighbours(last, self.params.expand_k), rows)
                rows = np.union1d(rows, last)
            return rows, self.products(candidates.query, rows)
        scores = self.products(candidates.query, rows)
        while True:
            best = rows[np.argsort(-scores, kind="stable")[: self.params.ladr_depth]]
            new = np.setdiff1d(self.graph.neighbours(best, self.params.expand_k), rows)
            if not len(new):
                return rows, scores
            rows = np.concatenate([rows, new])
            scores = np.concatenate([scores, self.products(candidates.query, new)])
