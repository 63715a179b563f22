"""Rocchio PRF of dense vectors with Pyserini's own class."""

from __future__ import annotations

from dataclasses import dataclass

from rnnreranker.rerank.prf_average import DEPTH, PrfReranker, pyserini_prf
from rnnreranker.settings import Params, context_setting, setting


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

    Args and Raises: as `Reranker`, and those of `pyserini_prf`.
    """

    name = "prf-rocchio"
    Params = PrfRocchioParams
    params: PrfRocchioParams

    def prepare(self) -> None:
        """Make Pyserini's rule."""
        given = self.params
        numbers = (given.rocchio_alpha, given.rocchio_beta, given.rocchio_gamma)
        self.rule = pyserini_prf()["DenseVectorRocchioPrf"](*numbers, given.rocchio_topk, given.rocchio_bottomk)
