"""Reranking by late interaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnnreranker.base.settings import Params, context_setting
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker


@dataclass(frozen=True)
class LateRerankerParams(Params):
    """Settings of reranking by late interaction."""

    context: int = context_setting(1000)


class LateReranker(Reranker):
    """MaxSim of the query's tokens and the candidates' (paper 002, eq. 1); 0 without tokens."""

    name = "late"
    needs = frozenset({"query tokens", "tokens"})
    Params = LateRerankerParams
    params: LateRerankerParams

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        bounds = np.array([0, len(query.tokens)])
        scores: np.ndarray = self.inputs.tokens.scores(query.tokens, bounds, candidates.rows, self.threads)[0]
        return scores.astype(np.float64)

    def asked(self, query: Query, candidates: Candidates, known: Sequence[int] = ()) -> tuple[np.ndarray, np.ndarray]:
        """The query's tokens (q, d) float32 and weights of 1."""
        return query.tokens, np.ones(len(query.tokens))
