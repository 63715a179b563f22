"""Average PRF of dense vectors with Pyserini's own class, and what both of its rules of feedback share."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.errors import UnavailableError, require
from rnnreranker.rerank.base import Candidates, Query, Reranker, inner_products
from rnnreranker.settings import Params, context_setting, setting

MODULE = "pyserini.search.faiss._prf"
CLASSES = ("DenseVectorPrf", "DenseVectorAveragePrf", "DenseVectorRocchioPrf")
DEPTH = "candidates that feedback comes from"


@dataclass(frozen=True)
class PrfAverageParams(Params):
    """Settings of average PRF; depth 3 is that of Pyserini's reproduction of Li et al. ("Average PRF 3")."""

    prf_depth: int = setting(3, DEPTH, at_least=1)
    context: int = context_setting()


@dataclass(frozen=True, eq=False)
class _Feedback:
    """What Pyserini's classes look at in a search result, whose own class is called differently in its versions."""

    vectors: np.ndarray  # (d,) float32


class PrfReranker(Reranker):
    """Inner products with a new query vector, made by `rule` from the query vector and the first candidates."""

    needs = frozenset({"run scores", "query vectors", "vectors"})
    params: Any  # with prf_depth
    rule: Any  # Pyserini's object

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64: inner products of the candidates with the new query vector."""
        feedback = [_Feedback(vector) for vector in candidates.vectors[: self.params.prf_depth]]
        new = np.asarray(self.rule.get_prf_q_emb(query.vector, feedback), dtype=np.float32)  # as Pyserini searches
        return inner_products(new, candidates.vectors)


class PrfAverageReranker(PrfReranker):
    """Inner products with the mean of the query vector and those of its first `prf_depth` candidates.

    Args and Raises: as `Reranker`, and those of `pyserini_prf`.
    """

    name = "prf-average"
    Params = PrfAverageParams

    def prepare(self) -> None:
        """Make Pyserini's rule."""
        self.rule = pyserini_prf()["DenseVectorAveragePrf"]()


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
