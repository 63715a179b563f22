"""Reranking by an encoder."""

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
    """Inner products of the query vector and the candidates' vectors, in float64."""

    name = "encoder"
    needs = frozenset({"query vectors", "vectors"})
    Params = EncoderRerankerParams
    params: EncoderRerankerParams

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        return inner_products(query.vector, candidates.vectors)
