"""Reranking by an encoder."""

from __future__ import annotations

import numpy as np

from rnnreranker.methods.rerank.base import Candidates, ContextParams, Query, Reranker
from rnnreranker.parts.vectors.exact import inner_products


class EncoderReranker(Reranker):
    """Inner products of the query vector and the candidates' vectors, in float64."""

    name = "encoder"
    needs = frozenset({"query vectors", "vectors"})
    Params = ContextParams

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        return inner_products(query.vector, candidates.vectors)
