"""Reranking by reciprocal nearest neighbours: the first `context` candidates of a query by s* (paper 000, eq. 1)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.command import progress
from rnnreranker.errors import InputError
from rnnreranker.rerank.lookup import Missing, checked_missing, query_rows, vector_rows
from rnnreranker.rerank.protocol import order_by_score, place_below
from rnnreranker.rnn import RnnParams, rnn_similarity

if TYPE_CHECKING:
    from rnnreranker.runs import Run
    from rnnreranker.vectors import QueryVectors, VectorSource

CHUNK_BYTES = 16 * 2**20  # candidate vectors reranked at a time; as many again are being fetched


class RnnReranker:
    """Reranks runs with the vectors of their candidates, by s* = lambda s(q, c) + (1 - lambda) J(q, c).

    s is the geometric similarity of query and candidate, J the Jaccard similarity of their reciprocal nearest
    neighbours among the query and its first `params.context` candidates; see `rnn_similarity` and `RnnParams`.

    Args:
        vectors: where candidate vectors come from, (d,) float32 each.
        params: the rNN parameters; `params.context` candidates of every query are reranked, the rest follow below them
            in their order.
        threads: worker threads; None = one per core. Results do not depend on it.
        missing: what to do with candidates that have no vector: "error", or "skip" = put them below the reranked ones.
        device: None = the compiled kernel, on the processor; "cuda", "cuda:1", "mps" or "cpu" = tensors there, see
            `rnnreranker.rnn.torch`. Scores agree at relative 1e-4 or absolute 1e-6, except by near ties.

    Raises:
        InputError: `missing` is neither, or this machine lacks the device.
    """

    name = "rnn"

    def __init__(
        self,
        vectors: VectorSource,
        params: RnnParams | None = None,
        *,
        threads: int | None = None,
        missing: Missing = "error",
        device: str | None = None,
    ) -> None:
        self.vectors = vectors
        self.params = params if params is not None else RnnParams()
        self.threads = threads
        self.missing = checked_missing(missing)
        self.device = device
        if device is not None:
            from rnnreranker.rnn.torch import usable_device

            usable_device(device)

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

        queries = query_rows(self.vectors, run, query_vectors)
        rows_of = vector_rows(self.vectors, run, self.missing)
        chosen = self._in_context(run, rows_of)
        context, rest = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        starts, rest_starts = _starts(chosen, run.offsets), _starts(~chosen, run.offsets)
        new = np.empty(len(context), dtype=np.float64)
        for first, last, fetched in self._fetched(run, context, starts, rows_of):
            part = slice(starts[first], starts[last])
            bounds = starts[first : last + 1]
            new[part] = self._similarities(run, queries[first:last], context[part], bounds, fetched)

        numbers = run.queries
        order = order_by_score(new, run.docids[run.rows[context]], numbers[context])
        context, new = context[order], new[order]
        lowered = np.empty(len(rest), dtype=np.float64)
        for query in np.flatnonzero(np.diff(rest_starts)):
            part = slice(rest_starts[query], rest_starts[query + 1])
            lowest = new[starts[query + 1] - 1] if starts[query + 1] > starts[query] else 0.0
            lowered[part] = place_below(lowest, run.scores[rest[part]])

        final = np.concatenate([context, rest])  # entries of the run in their new order, once sorted by query
        by_query = np.argsort(numbers[final], kind="stable")
        rows, scores = run.rows[final[by_query]], np.concatenate([new, lowered])[by_query]
        return Run.from_parts(run.qids, run.offsets, run.docids, rows, scores)

    def check(self, run: Run) -> None:
        """Look, before any work, that the candidates of a run have vectors.

        Raises:
            InputError: how many have none, and the first three; not with missing="skip".
        """
        vector_rows(self.vectors, run, self.missing)

    def _in_context(self, run: Run, rows_of: np.ndarray) -> np.ndarray:
        """(L,) bool: whether an entry of the run takes part: the first `context` with a vector of every query."""
        has_vector = rows_of[run.rows] >= 0
        place = np.cumsum(has_vector) - np.repeat(_starts(has_vector, run.offsets)[:-1], np.diff(run.offsets))
        return has_vector & (place <= self.params.context)

    def _fetched(
        self, run: Run, context: np.ndarray, starts: np.ndarray, rows_of: np.ndarray
    ) -> Iterator[tuple[int, int, np.ndarray]]:
        """Ranges of queries whose candidate vectors fit the buffer, and these; the next are fetched meanwhile."""
        deepest = int(np.diff(run.offsets).max(initial=1))
        size = max(1, CHUNK_BYTES // (4 * self.vectors.dimension * min(self.params.context, deepest)))
        bounds = [*range(0, len(run.qids), size), len(run.qids)]

        ranges = list(itertools.pairwise(bounds))
        longest = max((int(starts[last] - starts[first]) for first, last in ranges), default=0)
        buffers = np.empty((min(len(ranges), 2), longest, self.vectors.dimension), dtype=np.float32)

        def fetch(number: int) -> np.ndarray:
            first, last = ranges[number]
            rows = rows_of[run.rows[context[starts[first] : starts[last]]]]
            return self.vectors.fetch(rows, buffers[number % 2, : len(rows)])  # the other one is being reranked

        with ThreadPoolExecutor(1, thread_name_prefix="rnnreranker-fetch") as ahead:
            coming = [ahead.submit(fetch, 0)] if ranges else []
            for number, (first, last) in enumerate(progress(ranges, unit="chunks", what="rerank"), 1):
                fetched = coming.pop().result()
                if number < len(ranges):
                    coming.append(ahead.submit(fetch, number))
                yield first, last, fetched

    def _similarities(
        self, run: Run, queries: np.ndarray, context: np.ndarray, starts: np.ndarray, fetched: np.ndarray
    ) -> np.ndarray:
        """(n,) float32: s* of the entries of some contexts, of which number i begins at starts[i]."""
        if not len(context):
            return np.empty(0, dtype=np.float32)
        lengths = np.diff(starts)
        real = np.arange(lengths.max()) < lengths[:, None]  # (B, N)
        if real.all():
            candidates = fetched.reshape(*real.shape, -1)
        else:
            candidates = np.zeros((*real.shape, fetched.shape[1]), dtype=np.float32)
            candidates[real] = fetched
        try:
            if self.device is not None:
                from rnnreranker.rnn import torch

                found = torch.rnn_similarity(queries, candidates, self.params, lengths=lengths, device=self.device)
                return found.cpu().numpy()[real]
            return rnn_similarity(queries, candidates, self.params, lengths=lengths, threads=self.threads)[real]
        except InputError:  # it says where in the batch: say which docid
            finite = np.isfinite(fetched).all(axis=1)
            if finite.all():
                raise
            docid = run.docids[run.rows[context[np.flatnonzero(~finite)[0]]]]
            raise InputError(f"the vector of {docid} has NaN or infinite values; build the index again") from None


def _starts(chosen: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """(Q+1,) int64: how many chosen entries stand before each query, and in all."""
    return np.concatenate([[0], np.cumsum(chosen)])[offsets]
