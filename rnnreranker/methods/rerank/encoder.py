"""Reranking by an encoder: inner products of query vectors and candidates' vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnreranker.base.settings import Params, context_setting
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker, inner_products


@dataclass(frozen=True)
class EncoderRerankerParams(Params):
    """Settings of reranking by an encoder; a score costs one inner product."""

    context: int = context_setting(1000)


class EncoderReranker(Reranker):
    """Inner products of the query vector and the candidates' vectors, in float64.

    With another encoder than that of the run this is a cascade; with the same, dense search among the candidates.
    """

    name = "encoder"
    needs = frozenset({"query vectors", "vectors"})
    Params = EncoderRerankerParams
    params: EncoderRerankerParams

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        return inner_products(query.vector, candidates.vectors)
