"""Average PRF inside the context, and what both ways of making a new query vector share there."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.methods.feedback.average import average
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker
from rnnreranker.parts.vectors.of_run import ranges_of
from rnnreranker.runs.head import choose_head, starts_of, with_new_head

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run

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

    def rerank(self, run: Run, query_vectors: QueryVectors | None = None) -> Run:
        """As `Reranker.rerank`, many queries at a time."""
        queries, (rows_of, usable) = self._query_vectors(run, query_vectors), self._usable(run)
        chosen = choose_head(run, self.params.context, usable)
        entries, starts = run.rows[chosen], starts_of(chosen, run.offsets)
        rows, bounds, lengths = rows_of[entries], starts.tolist(), np.diff(starts)
        new, dimension = np.empty(len(entries), dtype=np.float64), self.vectors.dimension
        ranges, cuts = ranges_of(bounds, dimension), (np.flatnonzero(np.diff(lengths)) + 1).tolist()
        longest = max((bounds[last] - bounds[first] for first, last in ranges), default=0)
        buffer, wide = np.empty((longest, dimension), dtype=np.float32), np.empty((longest, dimension))
        with one_blas_thread():
            for first, last in progress(ranges, unit="chunks", what="rerank"):
                begin, size = bounds[first], bounds[last] - bounds[first]
                vectors = self.vectors.fetch(rows[begin : begin + size], buffer[:size])
                inside = cuts[bisect_right(cuts, first) : bisect_left(cuts, last)]
                for one, other in itertools.pairwise([first, *inside, last]):  # queries with equally many candidates
                    part, shape = slice(bounds[one] - begin, bounds[other] - begin), (other - one, int(lengths[one]))
                    if shape[1]:
                        own, into = (values[part].reshape(*shape, dimension) for values in (vectors, wide))
                        self._products(queries[one:other], own, into, new[bounds[one] : bounds[other]].reshape(shape))
        if not (finite := np.isfinite(new)).all():  # as of every vector that has NaN or infinite values
            number = bisect_right(bounds, int(np.argmin(finite))) - 1
            part = slice(bounds[number], bounds[number + 1])
            self._vectors_of(rows[part], run.docids[entries[part]])
            self._checked(run.qids[number], new[part], int(lengths[number]))
        return with_new_head(run, chosen, new)

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64: inner products of the candidates with the new query vector."""
        vectors, found = candidates.vectors[None], np.empty((1, len(candidates)))
        self._products(query.vector[None], vectors, np.empty(vectors.shape), found)
        return found[0]

    def _products(self, queries: np.ndarray, candidates: np.ndarray, wide: np.ndarray, found: np.ndarray) -> None:
        """Put inner products of candidates (B, n, d) with the new queries into found, (B, n) float64.

        Rows are summed as `inner_products` sums them. queries: (B, d) float32; wide: (B, n, d) float64, to write to.
        """
        new = self.new_query(queries, candidates[:, : self.params.prf_depth])
        np.copyto(wide, candidates)
        np.einsum("qnd,qd->qn", wide, new.astype(np.float64), out=found)

    @abstractmethod
    def new_query(self, query: np.ndarray, feedback: np.ndarray) -> np.ndarray:
        """(..., d) float32: made of the query (..., d) and (..., n, d) first candidates, n >= 1."""


class PrfAverageReranker(PrfReranker):
    """Inner products with the mean of the query vector and those of its first `prf_depth` candidates.

    The new vector is that of Pyserini's DenseVectorAveragePrf. Args and Raises: as `Reranker`.
    """

    name = "prf-average"
    Params = PrfAverageParams

    def new_query(self, query: np.ndarray, feedback: np.ndarray) -> np.ndarray:
        """As `average`."""
        return average(query, feedback)
