"""What the rivals of rNN share: a query at a time, its first candidates by new scores, the rest of the run below."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.command import progress
from rnnreranker.errors import InputError
from rnnreranker.rerank.lookup import Missing, checked_missing, query_rows, vector_rows
from rnnreranker.rerank.protocol import order_by_score, place_below

if TYPE_CHECKING:
    from rnnreranker.runs import Run
    from rnnreranker.vectors import QueryVectors, VectorSource


class ContextReranker(ABC):
    """Reranks the first `params.context` candidates of every query; a subclass says how they are scored.

    Args:
        vectors: where candidate vectors come from, (d,) float32 each.
        params: the settings of the method, one of them `context`.
        missing: what to do with candidates that have no vector: "error", or "skip" = put them below the reranked ones.

    Raises:
        InputError: `missing` is neither.
    """

    name: str

    def __init__(self, vectors: VectorSource, params: Any, *, missing: Missing = "error") -> None:
        self.vectors = vectors
        self.params = params
        self.missing = checked_missing(missing)

    @abstractmethod
    def scores(self, query: np.ndarray, candidates: np.ndarray, before: np.ndarray) -> np.ndarray:
        """(n,) float64, larger = better: the new scores of the candidates of one query.

        query: (d,) float32; candidates: (n, d) float32, n >= 1, in the order of the run; before: (n,) float64, their
        scores in the run. All finite.
        """

    def rerank(self, run: Run, query_vectors: QueryVectors) -> Run:
        """The run with the context of every query in descending order of the new scores, ties by docid.

        Args:
            run: Q queries, any depth.
            query_vectors: a (d,) float32 vector for every query of the run, in any order.

        Returns:
            A run of the same queries and entries; those outside the context are moved below it.

        Raises:
            InputError: a query without a vector, a candidate without one (missing="error"), vectors of another
                dimension than the queries', NaN or infinite vectors.
        """
        from rnnreranker.rnn.chunks import one_blas_thread
        from rnnreranker.runs import Run

        queries = query_rows(self.vectors, run, query_vectors)
        broken = np.flatnonzero(~np.isfinite(queries).all(axis=1))
        if len(broken):
            raise InputError(f"the vector of query {run.qids[broken[0]]} has NaN or infinite values; encode it again")
        rows_of = vector_rows(self.vectors, run, self.missing)
        rows, scores = run.rows.copy(), run.scores.astype(np.float64)
        with one_blas_thread():
            for number in progress(range(len(run.qids)), unit="queries", what="rerank"):
                own = slice(run.offsets[number], run.offsets[number + 1])
                rows[own], scores[own] = self._one(run, queries[number], own, rows_of)
        return Run.from_parts(run.qids, run.offsets, run.docids, rows, scores)

    def check(self, run: Run) -> None:
        """Look, before any work, that the candidates of a run have vectors.

        Raises:
            InputError: how many have none, and the first three; not with missing="skip".
        """
        vector_rows(self.vectors, run, self.missing)

    def _one(self, run: Run, query: np.ndarray, own: slice, rows_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows and scores of the entries of one query in their new order."""
        rows, before = run.rows[own], run.scores[own].astype(np.float64)
        has_vector = rows_of[rows] >= 0
        chosen = has_vector & (np.cumsum(has_vector) <= self.params.context)
        if not chosen.any():
            return rows, place_below(0.0, before)
        context = rows[chosen]
        candidates = self.vectors.fetch(rows_of[context])
        finite = np.isfinite(candidates).all(axis=1)
        if not finite.all():
            docid = run.docids[context[np.flatnonzero(~finite)[0]]]
            raise InputError(f"the vector of {docid} has NaN or infinite values; build the index again")
        new = self.scores(query, candidates, before[chosen])
        order = order_by_score(new, run.docids[context])
        lowered = place_below(float(new[order[-1]]), before[~chosen])
        return np.concatenate([context[order], rows[~chosen]]), np.concatenate([new[order], lowered])
