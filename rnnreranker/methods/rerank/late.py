"""Reranking by late interaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from rnnreranker.base.settings import Params
from rnnreranker.methods.rerank.base import Candidates, ContextParams, Query, Reranker


class LateReranker(Reranker):
    """MaxSim of the query's tokens and the candidates' (paper 002, eq. 1); 0 without tokens."""

    name = "late"
    needs = frozenset({"query tokens", "tokens"})
    Params: ClassVar[type[Params]] = ContextParams

    def scores(self, query: Query, candidates: Candidates, known: Sequence[int] = ()) -> np.ndarray:
        """(n,) float64: MaxSim with what is `asked`."""
        return self.maxsim(*self.asked(query, candidates, known), candidates.rows)

    def asked(self, query: Query, candidates: Candidates, known: Sequence[int] = ()) -> tuple[np.ndarray, np.ndarray]:
        """The query's tokens, (p, d) float32, and weights, (p,) float64.

        known: positions of candidates that are relevant, which feedback reads first.
        """
        return query.tokens, np.ones(len(query.tokens))

    def maxsim(self, tokens: np.ndarray, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(n,) float64: MaxSim of weighted tokens with documents."""
        bounds = np.array([0, len(tokens)])
        return self.inputs.tokens.scores(tokens, bounds, rows, self.threads, weights)[0].astype(np.float64)
