"""Rocchio PRF inside the context: the candidates of a run, ordered by a new query vector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.methods.feedback.rocchio import rocchio
from rnnreranker.methods.rerank.prf_average import DEPTH, PrfReranker


@dataclass(frozen=True)
class PrfRocchioParams(Params):
    """Settings of Rocchio PRF; the defaults are those of Pyserini's reproduction of Li et al.

    It calls them "Rocchio PRF 5 A0.4 B0.6": depth 5, alpha .4, beta .6, no negative feedback. The flags
    of Pyserini have other defaults: alpha .9, beta .1, topk 3.
    """

    prf_depth: int = setting(5, DEPTH, at_least=1)
    rocchio_alpha: float = setting(0.4, "weight of the query vector", at_least=0)
    rocchio_beta: float = setting(0.6, "weight of the mean of the first --rocchio-topk vectors", at_least=0)
    rocchio_gamma: float = setting(
        0.1, "weight of the mean of the last --rocchio-bottomk vectors, taken off", at_least=0
    )
    rocchio_topk: int = setting(5, "of the --prf-depth candidates, so many from the top count for", at_least=1)
    rocchio_bottomk: int = setting(0, "and so many from the bottom against (0 = none)", at_least=0)
    context: int = context_setting()


class PrfRocchioReranker(PrfReranker):
    """Inner products with alpha q + beta mean(first topk) - gamma mean(last bottomk) of `prf_depth` candidates.

    The new vector is that of Pyserini's DenseVectorRocchioPrf. Args and Raises: as `Reranker`.
    """

    name = "prf-rocchio"
    Params = PrfRocchioParams
    params: PrfRocchioParams

    def new_query(self, query: np.ndarray, feedback: np.ndarray) -> np.ndarray:
        """As `rocchio`."""
        given = self.params
        weights = (given.rocchio_alpha, given.rocchio_beta, given.rocchio_gamma)
        return rocchio(query, feedback, *weights, top=given.rocchio_topk, bottom=given.rocchio_bottomk)
