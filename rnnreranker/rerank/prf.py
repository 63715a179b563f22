"""Vector pseudo-relevance feedback with Pyserini's own classes: a new query vector, candidates ranked by it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.errors import UnavailableError, require
from rnnreranker.rerank.context import ContextReranker
from rnnreranker.rerank.settings import NOT_NEGATIVE, check, context_setting, setting

if TYPE_CHECKING:
    from rnnreranker.vectors import VectorSource

MODULE = "pyserini.search.faiss._prf"
CLASSES = ("DenseVectorPrf", "DenseVectorAveragePrf", "DenseVectorRocchioPrf")
DEPTH = "candidates that feedback comes from (default of prf-rocchio: 5)"


@dataclass(frozen=True)
class PrfAverageParams:
    """Settings of average PRF; depth 3 is that of Pyserini's reproduction of Li et al. ("Average PRF 3")."""

    prf_depth: int = setting(3, DEPTH)
    context: int = context_setting()

    def __post_init__(self) -> None:
        check(self, {"prf_depth": 1, "context": 1})


@dataclass(frozen=True)
class PrfRocchioParams:
    """Settings of Rocchio PRF; the defaults are those of Pyserini's reproduction of Li et al.

    It calls them "Rocchio PRF 5 A0.4 B0.6": depth 5, alpha .4, beta .6, no negative feedback. The flags
    of Pyserini have other defaults: alpha .9, beta .1, topk 3.
    """

    prf_depth: int = setting(5, DEPTH)
    rocchio_alpha: float = setting(0.4, "weight of the query vector")
    rocchio_beta: float = setting(0.6, "weight of the mean of the first --rocchio-topk vectors")
    rocchio_gamma: float = setting(0.1, "weight of the mean of the last --rocchio-bottomk vectors, taken off")
    rocchio_topk: int = setting(5, "of the --prf-depth candidates, so many from the top count for")
    rocchio_bottomk: int = setting(0, "and so many from the bottom against (0 = none)")
    context: int = context_setting()

    def __post_init__(self) -> None:
        whole = {"prf_depth": 1, "rocchio_topk": 1, "rocchio_bottomk": 0, "context": 1}
        check(self, whole, dict.fromkeys(("rocchio_alpha", "rocchio_beta", "rocchio_gamma"), NOT_NEGATIVE))


@dataclass(frozen=True, eq=False)
class _Feedback:
    """What Pyserini's classes look at in a search result, whose own class is called differently in its versions."""

    vectors: np.ndarray  # (d,) float32


class _PrfReranker(ContextReranker):
    params: PrfAverageParams | PrfRocchioParams
    rule: Any  # Pyserini's object

    def scores(self, query: np.ndarray, candidates: np.ndarray, before: np.ndarray) -> np.ndarray:
        """(n,) float64: inner products of the candidates with the new query vector."""
        feedback = [_Feedback(vector) for vector in candidates[: self.params.prf_depth]]
        new = np.asarray(self.rule.get_prf_q_emb(query, feedback), dtype=np.float32)  # as Pyserini searches with it
        # einsum, not BLAS: a row's sum does not depend on where the row stands, so equal vectors tie
        return np.einsum("nd,d->n", candidates.astype(np.float64), new.astype(np.float64))


class PrfAverageReranker(_PrfReranker):
    """Inner products with the mean of the query vector and those of its first `prf_depth` candidates.

    Args and Raises: as `ContextReranker`, and those of `pyserini_prf`.
    """

    name = "prf-average"

    def __init__(
        self,
        vectors: VectorSource,
        params: PrfAverageParams | None = None,
        *,
        missing: Literal["error", "skip"] = "error",
    ) -> None:
        super().__init__(vectors, params if params is not None else PrfAverageParams(), missing=missing)
        self.rule = pyserini_prf()["DenseVectorAveragePrf"]()


class PrfRocchioReranker(_PrfReranker):
    """Inner products with alpha q + beta mean(first topk) - gamma mean(last bottomk) of `prf_depth` candidates.

    Args and Raises: as `ContextReranker`, and those of `pyserini_prf`.
    """

    name = "prf-rocchio"

    def __init__(
        self,
        vectors: VectorSource,
        params: PrfRocchioParams | None = None,
        *,
        missing: Literal["error", "skip"] = "error",
    ) -> None:
        given = params if params is not None else PrfRocchioParams()
        super().__init__(vectors, given, missing=missing)
        numbers = (given.rocchio_alpha, given.rocchio_beta, given.rocchio_gamma)
        self.rule = pyserini_prf()["DenseVectorRocchioPrf"](*numbers, given.rocchio_topk, given.rocchio_bottomk)


@functools.cache
def pyserini_prf() -> dict[str, Any]:
    """Pyserini's feedback classes by name. Importing them starts Java, as all of Pyserini's searchers do.

    Raises:
        MissingDependencyError: Pyserini is not installed.
        UnavailableError: no Java 21 or newer, or a version of Pyserini that has the classes elsewhere.
    """
    from rnnreranker.java import start_java  # late: it loads what only Java needs

    start_java()
    module = require(MODULE, "--rerank prf-average and prf-rocchio", "pyserini")
    lost = [name for name in CLASSES if not hasattr(module, name)]
    if lost:
        raise UnavailableError(f"{MODULE}: no class {', '.join(lost)} in this version; install pyserini 1.x or 2.x")
    return {name: getattr(module, name) for name in CLASSES}
