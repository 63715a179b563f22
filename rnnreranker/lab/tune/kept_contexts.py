"""The contexts of a query set with their similarities kept, so that other parameters cost no vectors and no product."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import cores, progress
from rnnreranker.base.errors import InputError, ParameterError
from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.lab.tune.identity import of_queries, of_run
from rnnreranker.parts.vectors.of_run import query_rows, vector_rows
from rnnreranker.rnn import reference
from rnnreranker.rnn.contexts import ContextBatch, similarities
from rnnreranker.runs import Run
from rnnreranker.runs.head import choose_head, with_new_head
from rnnreranker.runs.score_use import scores_of_use

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.rnn import RnnParams

MEMORY = 4 << 30  # bytes of similarities that are kept at most


class Contexts:
    """The first candidates of every query and the inner products among them and the query.

    Args:
        run: Q queries with their candidates.
        vectors: where the candidates' vectors are; all of them must be there.
        query_vectors: (d,) float32 for every query of the run.
        deepest: candidates of a query that are kept: no context can be larger.
        threads: that compute; None = one per core. Nothing depends on it.

    Attributes:
        about: fingerprints of what it was made of.

    Raises:
        InputError: a candidate or query without a vector, vectors that are not finite, or more than 4 GiB of
            similarities (with the `deepest` that would fit).
    """

    def __init__(
        self, run: Run, vectors: VectorSource, query_vectors: QueryVectors, deepest: int, threads: int | None = None
    ) -> None:
        self.run = run
        self.deepest = deepest
        self.about = {"vectors": vectors.fingerprint, "run": of_run(run), "query vectors": of_queries(query_vectors)}
        self._threads = threads or cores()
        depths = np.minimum(np.diff(run.offsets), deepest)
        needed = int((4 * (depths + 1) ** 2).sum())
        if needed > MEMORY:
            fits = int(np.sqrt(MEMORY / 4 / max(len(run), 1))) - 1
            raise InputError(
                f"{len(run)} queries with {deepest} candidates need {needed / 2**30:.1f} GiB of similarities; "
                f"expected at most {MEMORY >> 30} GiB: give {argument('hits', max(fits, 1))} or fewer queries"
            )
        rows, queries = vector_rows(vectors, run), query_rows(run, query_vectors, vectors.dimension)
        self._sizes = (depths + 1).astype(np.int64)
        self._raw: list[np.ndarray] = []
        self._shift_free: list[np.ndarray] = []  # the same array unless a constant outweighs the differences
        with one_blas_thread():
            for number, qid in enumerate(progress(run.qids, unit="queries", what="similarities")):
                first = int(run.offsets[number])
                entries = run.rows[first : first + int(depths[number])]
                candidates = vectors.fetch(rows[entries])
                context = np.concatenate([queries[number][None], candidates]).astype(np.float32)
                if not np.isfinite(context).all():
                    raise InputError(f"query {qid}: its vector or that of a candidate has NaN or infinite values")
                raw = reference.inner_products(context)
                far = reference.outweighed(raw)
                self._raw.append(raw)
                self._shift_free.append(reference.inner_products(context, shift_free=True) if far else raw)

    def rerank(self, params: RnnParams, queries: Sequence[int] | None = None) -> Run:
        """The run of some queries as `RnnReranker` with these parameters orders it.

        Args:
            params: `context` no larger than `deepest`.
            queries: their numbers in the run; None = all.

        Raises:
            InputError: a larger context.
            ParameterError: an exponential weight that would overflow.
        """
        chosen = np.arange(len(self.run)) if queries is None else np.asarray(queries, dtype=np.int64)
        if params.context > self.deepest:
            raise InputError(f"context={params.context}: only {self.deepest} candidates of a query are kept")
        sizes = np.minimum(self._sizes[chosen], params.context + 1)
        similarities = self._similarities(params, chosen, sizes)
        run = self.run if queries is None else self.run.of_queries(chosen)
        inside = np.arange(similarities.shape[1]) < sizes[:, None] - 1
        return with_new_head(run, choose_head(run, params.context), similarities[inside])

    def _similarities(self, params: RnnParams, chosen: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """(n, N) float32: s* of the candidates of every chosen query; what stands behind a context is undefined."""
        grams = self._shift_free if params.scale == "minmax" else self._raw

        def fill(part: slice, gram: np.ndarray, shift_free: bool = False) -> None:
            for index in range(part.start, part.stop):
                m = int(sizes[index])
                gram[index - part.start, :m, :m] = grams[int(chosen[index])][:m, :m]

        base = np.zeros((len(chosen), max(int(sizes.max(initial=1)) - 1, 1)))
        if params.uses_run:
            base[np.arange(base.shape[1]) < sizes[:, None] - 1] = self._base[self._entries(chosen, sizes)]
        scores, problem = similarities(ContextBatch(sizes, lambda engine: fill), params, base, threads=self._threads)
        for bad in np.flatnonzero(problem != 0)[:1].tolist():
            qid = self.run.qids[int(chosen[bad])]
            if np.isnan(problem[bad]):
                raise InputError(f"query {qid}: inner products beyond the range of float32; scale the vectors down")
            raise ParameterError(f"query {qid}: {reference.too_large(problem[bad])}")
        return scores.astype(np.float32)

    @functools.cached_property
    def _base(self) -> np.ndarray:
        """(L,) float64: the scores of the run as the reranker takes them."""
        return scores_of_use(self.run.scores, self.run.offsets)

    def _entries(self, chosen: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """(n,) int64: the entries of the run that are the candidates of the chosen queries, one after the other."""
        counts = sizes - 1
        starts = self.run.offsets[chosen] - np.concatenate([[0], np.cumsum(counts)[:-1]])
        return np.repeat(starts, counts) + np.arange(counts.sum())
