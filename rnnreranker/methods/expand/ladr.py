"""Lexically accelerated dense retrieval (Kulkarni, MacAvaney, Goharian and Frieder, SIGIR 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.expand.base import Expander, GraphCandidates
from rnnreranker.methods.expand.neighbours import K_HELP


@dataclass(frozen=True)
class LadrParams(Params):
    """Settings of LADR; the defaults are those of pyterrier_dr."""

    k: int = setting(16, K_HELP, at_least=1)
    hits: int = setting(1000, "documents of a query that are kept, the best", at_least=1)
    variant: Literal["proactive", "adaptive"] = setting(
        "proactive",
        "form: proactive, all neighbours of all candidates; adaptive, those of the best, until no new one comes",
    )
    hops: int = setting(1, "rounds of adding neighbours (proactive)", at_least=1)
    depth: int = setting(100, "best documents whose neighbours are added (adaptive)", at_least=1)


class LadrExpander(Expander):
    """Dense retrieval among the candidates of the run and their neighbours; scores are inner products.

    Proactive takes neighbours up to `hops` away. Adaptive adds the neighbours of the best documents until none is new.
    """

    name = "ladr"
    needs = frozenset({"neighbours", "vectors", "query vectors"})
    Params = LadrParams
    params: LadrParams

    def brought(self, candidates: GraphCandidates) -> tuple[np.ndarray, np.ndarray]:
        seen = np.zeros(len(self.graph.docids), dtype=bool)
        rows = np.unique(candidates.known)
        seen[rows] = True
        if self.params.variant == "proactive":
            last = rows
            for _ in range(self.params.hops):
                last = self._new(last, seen)
            rows = np.flatnonzero(seen)
            scores = self.products(candidates.query, rows)
            lowest = np.sort(scores)[-self.params.hits :][:1]  # ties: `head` breaks them
            kept = scores >= lowest if len(rows) else seen[:0]
            return rows[kept], scores[kept]
        scores = self.products(candidates.query, rows)
        while True:
            best = rows[np.argsort(-scores, kind="stable")[: self.params.depth]]
            new = self._new(best, seen)
            if not len(new):
                return rows, scores
            rows = np.concatenate([rows, new])
            scores = np.concatenate([scores, self.products(candidates.query, new)])

    def _new(self, rows: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """The neighbours of rows that are not in `seen`, (N,) bool, ascending; adds them to it."""
        around = self.graph.neighbours(rows, self.params.k).ravel()
        new = np.unique(around[~seen[around]])
        seen[new] = True
        return new
