"""Average PRF inside the context, and what both ways of making a new query vector share there."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.methods.feedback.average import average
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker, inner_products

DEPTH = "candidates that feedback comes from (f_p of colbert-prf)"


@dataclass(frozen=True)
class PrfAverageParams(Params):
    """Settings of average PRF; depth 3 is that of Pyserini's reproduction of Li et al. ("Average PRF 3")."""

    prf_depth: int = setting(3, DEPTH, at_least=1)
    context: int = context_setting()


class PrfReranker(Reranker):
    """Inner products with a new query vector, made from the query vector and those of the first candidates."""

    needs = frozenset({"run scores", "query vectors", "vectors"})
    params: Any  # with prf_depth

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64: inner products of the candidates with the new query vector."""
        return inner_products(
            self.new_query(query.vector, candidates.vectors[: self.params.prf_depth]), candidates.vectors
        )

    @abstractmethod
    def new_query(self, query: np.ndarray, feedback: np.ndarray) -> np.ndarray:
        """(d,) float32: made of the query (d,) and (n, d) first candidates, n >= 1."""


class PrfAverageReranker(PrfReranker):
    """Inner products with the mean of the query vector and those of its first `prf_depth` candidates.

    The new vector is that of Pyserini's DenseVectorAveragePrf. Args and Raises: as `Reranker`.
    """

    name = "prf-average"
    Params = PrfAverageParams

    def new_query(self, query: np.ndarray, feedback: np.ndarray) -> np.ndarray:
        """As `average`."""
        return average(query, feedback)
