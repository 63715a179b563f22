"""Reranking by reciprocal nearest neighbours: the first `context` candidates of a query by s* (paper 000, eq. 1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np

from rnnreranker.command import progress
from rnnreranker.errors import InputError
from rnnreranker.rerank.protocol import order_by_score, place_below
from rnnreranker.rnn import RnnParams, rnn_similarity

if TYPE_CHECKING:
    from rnnreranker.runs import Run
    from rnnreranker.vectors import QueryVectors, VectorSource

CHUNK_BYTES = 64 * 2**20  # candidate vectors held at a time


class RnnReranker:
    """Reranks runs with the vectors of their candidates.

    Args:
        vectors: where candidate vectors come from, (d,) float32 each.
        params: the rNN parameters; `params.context` candidates of every query are reranked, the rest follow below them
            in their order.
        threads: worker threads; None = one per core. Results do not depend on it.
        missing: what to do with candidates that have no vector: "error", or "skip" = put them below the reranked ones.
    """

    name = "rnn"

    def __init__(
        self,
        vectors: VectorSource,
        params: RnnParams | None = None,
        *,
        threads: int | None = None,
        missing: Literal["error", "skip"] = "error",
    ) -> None:
        self.vectors = vectors
        self.params = params if params is not None else RnnParams()
        self.threads = threads
        self.missing = missing

    def rerank(self, run: Run, query_vectors: QueryVectors) -> Run:
        """The run with the context of every query in descending order of s*, ties by docid.

        Args:
            run: Q queries, any depth.
            query_vectors: a (d,) float32 vector for every query of the run, in any order.

        Returns:
            A run of the same queries and entries. Scores of reranked entries are s*; the others are moved below them.

        Raises:
            InputError: a query without a vector, a candidate without one (missing="error"), vectors of another
                dimension than the queries', NaN or infinite vectors.
        """
        from rnnreranker.runs import Run

        queries = self._query_rows(run, query_vectors)
        vector_rows = self._vector_rows(run)
        docid_ranks = np.empty(len(run.docids), dtype=np.int64)
        docid_ranks[np.argsort(run.docids, kind="stable")] = np.arange(len(run.docids))

        rows = np.empty_like(run.rows)
        scores = np.empty(len(run.rows), dtype=np.float64)
        for first, last in self._chunks(run):
            contexts = [self._context(run, query, vector_rows) for query in range(first, last)]
            similarities = self._similarities(run, first, queries[first:last], contexts, vector_rows)
            for i, (context, rest) in enumerate(contexts):
                begin, end = run.offsets[first + i], run.offsets[first + i + 1]
                new = similarities[i, : len(context)].astype(np.float64)
                order = order_by_score(new, docid_ranks[run.rows[context]])
                rows[begin:end] = run.rows[np.concatenate([context[order], rest])]
                lowest = new[order[-1]] if len(order) else 0.0
                scores[begin:end] = np.concatenate([new[order], place_below(lowest, run.scores[rest])])
        return Run.from_parts(run.qids, run.offsets, run.docids, rows, scores)

    def _query_rows(self, run: Run, query_vectors: QueryVectors) -> np.ndarray:
        """(Q, d) float32: the query vectors in the order of the run."""
        dimension = query_vectors.vectors.shape[1]
        if dimension != self.vectors.dimension:
            raise InputError(
                f"query vectors have {dimension} dimensions, the index has {self.vectors.dimension}; "
                "encode the queries with the encoder that made the index"
            )
        places = {qid: row for row, qid in enumerate(query_vectors.qids)}
        lost = [qid for qid in run.qids if qid not in places]
        if lost:
            shown = ", ".join(lost[:3])
            raise InputError(
                f"{len(lost)} queries of the run have no vector (first: {shown}); check topics and run match"
            )
        return query_vectors.vectors[[places[qid] for qid in run.qids]]

    def _vector_rows(self, run: Run) -> np.ndarray:
        """(V,) int64: the vector row of each distinct docid of the run, -1 where there is none."""
        vector_rows = self.vectors.rows(list(run.docids))
        lost = np.flatnonzero(vector_rows < 0)
        if len(lost) and self.missing == "error":
            shown = ", ".join(map(str, run.docids[lost[:3]]))
            raise InputError(
                f"{len(lost)} of {len(run.docids)} docids in the run are not in the index (first: {shown}); "
                "use the index that the run was made from, or --missing skip to leave them below the reranked ones"
            )
        return vector_rows

    def _context(self, run: Run, query: int, vector_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Entries of the run that take part for a query, and those that follow, both in their order."""
        entries = np.arange(run.offsets[query], run.offsets[query + 1])
        has_vector = vector_rows[run.rows[entries]] >= 0
        chosen = np.flatnonzero(has_vector)[: self.params.context]
        followers = np.ones(len(entries), dtype=bool)
        followers[chosen] = False
        return entries[chosen], entries[followers]

    def _chunks(self, run: Run) -> Iterator[tuple[int, int]]:
        """Ranges of queries whose candidate vectors fit the buffer."""
        deepest = int(np.diff(run.offsets).max(initial=1))
        size = max(1, CHUNK_BYTES // (4 * self.vectors.dimension * min(self.params.context, deepest)))
        starts = range(0, len(run.qids), size)
        for first in progress(starts, unit="chunks", what="rerank"):
            yield first, min(first + size, len(run.qids))

    def _similarities(
        self,
        run: Run,
        first: int,
        queries: np.ndarray,
        contexts: list[tuple[np.ndarray, np.ndarray]],
        vector_rows: np.ndarray,
    ) -> np.ndarray:
        """(B, N) float32: s* of every context's candidates; -inf where a context is shorter than N."""
        lengths = np.array([len(context) for context, _ in contexts])
        candidates = np.zeros((len(contexts), max(1, lengths.max()), self.vectors.dimension), dtype=np.float32)
        for i, (context, _) in enumerate(contexts):
            if not len(context):
                continue
            fetched = self.vectors.fetch(vector_rows[run.rows[context]])
            finite = np.isfinite(fetched).all(axis=1)
            if not finite.all():
                docid = run.docids[run.rows[context[np.flatnonzero(~finite)[0]]]]
                raise InputError(f"the vector of {docid} has NaN or infinite values; build the index again")
            if not np.isfinite(queries[i]).all():
                raise InputError(
                    f"the vector of query {run.qids[first + i]} has NaN or infinite values; encode it again"
                )
            candidates[i, : len(context)] = fetched
        return rnn_similarity(queries, candidates, self.params, lengths=lengths, threads=self.threads)
