"""Reranking by reciprocal nearest neighbours: the first `context` candidates of a query by s*."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.command import progress
from rnnreranker.errors import InputError
from rnnreranker.rerank.base import Candidates, Query, Reranker
from rnnreranker.rnn import RnnParams, rnn_similarity
from rnnreranker.rnn.chunks import engine
from rnnreranker.runs.head import choose_head, starts_of, with_new_head
from rnnreranker.runs.score_use import scores_of_use

if TYPE_CHECKING:
    from rnnreranker.runs import Run
    from rnnreranker.vectors import QueryVectors

CHUNK_BYTES = 16 * 2**20  # candidate vectors reranked at a time; as many again are being fetched


class RnnReranker(Reranker):
    """Reranks runs with the vectors of their candidates, by s*, whose formula is in `RnnParams`.

    s* mixes what the run knows of a candidate, its rank and score, and its inner product with the query, with the
    Jaccard similarity of reciprocal nearest neighbours among the query and its first `params.context` candidates. Of a
    run whose scores tell nothing beyond the order (`scores_of_use`), only ranks are used, which is said in one line.

    Args and Raises: as `Reranker`; params: the rNN parameters. device: None = the compiled kernel, on the processor;
    others = tensors there, see `rnnreranker.rnn.torch`. Scores agree at relative 1e-4 or absolute 1e-6, except by near
    ties.
    """

    name = "rnn"
    needs = frozenset({"query vectors", "vectors", "run scores"})
    Params = RnnParams
    params: RnnParams
    takes_device = True

    @property
    def reads_scores(self) -> bool:
        """Whether the run's ranks or scores count, which they do not in eq. 1 and its scale-free form."""
        return self.params.uses_run

    def run_scores(self, run: Run) -> np.ndarray:
        """(L,) float64: the scores of the run, zeros where they tell nothing beyond the order."""
        return scores_of_use(run.scores, run.offsets) if self.params.uses_run and self.params.run_weight else run.scores

    def prepare(self) -> None:
        """Look that this machine has the device."""
        if self.device is not None:
            from rnnreranker.rnn.torch import usable_device

            usable_device(self.device)

    def rerank(self, run: Run, query_vectors: QueryVectors | None = None) -> Run:
        """As `Reranker.rerank`, many queries at a time; scores of reranked entries are s*."""
        queries, (rows_of, usable) = self._query_vectors(run, query_vectors), self._usable(run)
        if self.device is None:
            engine()
        chosen = choose_head(run, self.params.context, usable)
        context, starts = np.flatnonzero(chosen), starts_of(chosen, run.offsets)
        base = self.run_scores(run)[context]
        new = np.empty(len(context), dtype=np.float64)
        for first, last, fetched in self._fetched(run, context, starts, rows_of):
            part = slice(starts[first], starts[last])
            bounds = starts[first : last + 1]
            new[part] = self._similarities(run, queries[first:last], context[part], base[part], bounds, fetched)
        return with_new_head(run, chosen, new)

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
        self,
        run: Run,
        queries: np.ndarray,
        context: np.ndarray,
        base: np.ndarray,
        starts: np.ndarray,
        fetched: np.ndarray,
    ) -> np.ndarray:
        """(n,) float32: s* of the entries of some contexts, of which number i begins at starts[i]; base: (n,)."""
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
            known = np.zeros(real.shape)
            known[real] = base
            return self._similar(queries, candidates, known, lengths)[real]
        except InputError:  # it says where in the batch: say which docid
            finite = np.isfinite(fetched).all(axis=1)
            if finite.all():
                raise
            docid = run.docids[run.rows[context[np.flatnonzero(~finite)[0]]]]
            raise InputError(f"the vector of {docid} has NaN or infinite values; build the index again") from None

    def _similar(
        self, queries: np.ndarray, candidates: np.ndarray, base: np.ndarray | None, lengths: np.ndarray
    ) -> np.ndarray:
        """(B, N) float32: s*, by kernel or tensors; base: (B, N) or None, as in `rnn_similarity`."""
        if self.device is None:
            return rnn_similarity(queries, candidates, self.params, base=base, lengths=lengths, threads=self.threads)
        from rnnreranker.rnn import torch

        found = torch.rnn_similarity(queries, candidates, self.params, base=base, lengths=lengths, device=self.device)
        return np.asarray(found.cpu().numpy())

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64: s* of the candidates of one query; without scores of a run, inner products stand for them."""
        base = None if candidates.scores is None else candidates.scores[None]
        found = self._similar(query.vector[None], candidates.vectors[None], base, np.array([len(candidates)]))
        return found[0].astype(np.float64)
