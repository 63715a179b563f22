"""Reranking by reciprocal nearest neighbours: the first `context` candidates of a query by s*."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base.chosen_method import SOURCES
from rnnreranker.base.command import progress
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError, brief
from rnnreranker.base.method import Inputs
from rnnreranker.methods.rerank.base import Candidates, Missing, Query, Reranker, inner_products
from rnnreranker.parts.vectors.of_run import notice_missing
from rnnreranker.rnn import RnnParams, rnn_similarity
from rnnreranker.rnn.api import given_similarity
from rnnreranker.rnn.graph import graph_similarity
from rnnreranker.rnn.maxsim import token_similarities
from rnnreranker.runs.head import choose_head, scores_of_use, starts_of, with_new_head

if TYPE_CHECKING:
    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.runs import Run

CHUNK_BYTES = 16 * 2**20  # candidate vectors reranked at a time; as many again are being fetched
QUERIES = 1024  # reranked at a time from a graph


Source = Literal["vectors", "neighbours", "tokens"]
Queries = Literal["encoded", "run", "none"]


class RnnReranker(Reranker):
    """Reranks runs with the vectors of their candidates, or with a graph of neighbours, by s*: see `RnnParams`.

    s* mixes the first stage's rank and score of a candidate, and its inner product with the query, with the
    Jaccard similarity of reciprocal nearest neighbours among the query and its first `params.context` candidates. Of a
    run whose scores tell nothing beyond the order (`scores_of_use`), only ranks are used, which is said in one line.

    From tokens two candidates are as similar as `rnn.maxsim.token_similarities` says, by MaxSim both ways.

    From a graph (`graph_similarity`) two candidates are as similar as it says where one is among the K neighbours of
    the other in the whole collection; no vector of a candidate is compared with another.

    Args:
        inputs: as `Reranker`; or a graph alone, which stands for `Inputs(neighbours=it)`.
        params: the rNN parameters.
        source: where similarities of candidates come from; None = from what is given alone, else "vectors".
        queries: with a graph, where those of query and candidate come from. "encoded": inner products of query vectors
            and `vectors`; "run": the run's scores are these products, as those of dense retrieval with the vectors of
            the graph; "none": they are not known (`RnnParams.without_query`), and no query is encoded. None = "encoded"
            where there are vectors, else "none".
        vectors: beside a graph alone, those it was made from.
        threads, missing: as `Reranker`.

    Raises:
        InputError: as `Reranker`; `queries` that the source cannot give; parameters that need similarities to the
            query, without these.
    """

    name = "rnn"
    needs = frozenset({"query vectors", "vectors", "run scores"})
    Params = RnnParams
    params: RnnParams
    takes_source = True

    def __init__(
        self,
        inputs: Inputs | VectorSource | NeighbourGraph,
        params: RnnParams | None = None,
        *,
        source: Source | None = None,
        queries: Queries | None = None,
        vectors: VectorSource | None = None,
        threads: int | None = None,
        missing: Missing = "error",
        device: str | Devices | None = None,
    ) -> None:
        from rnnreranker.parts.neighbours import NeighbourGraph

        for name, value, words in (("source", source, SOURCES["from"]), ("queries", queries, SOURCES["queries"])):
            if value is not None and not (isinstance(value, str) and value in words):
                raise InputError(f"{name}={brief(value)}: expected one of {', '.join(words)}")
        if isinstance(inputs, NeighbourGraph):
            source, inputs = "neighbours", Inputs(neighbours=inputs, vectors=vectors)
        self.source = source or "vectors"
        if queries is None:
            known = not isinstance(inputs, Inputs) or inputs.has("vectors")
            queries = "encoded" if known or self.source != "neighbours" else "none"
        self.queries = queries
        if self.source != "neighbours" and queries != "encoded":
            raise InputError(f"queries={queries!r}: with {self.source} the query has its own; expected 'encoded'")
        self.needs = self.needs_from(self.source, queries)  # type: ignore[misc]  # of this one, not of the method
        super().__init__(inputs, params, threads=threads, missing=missing, device=device)

    @classmethod
    def needs_from(cls, source: str, queries: str) -> frozenset[str]:
        """What is needed with similarities from there."""
        if source == "vectors":
            return frozenset({"query vectors", "vectors", "run scores"})
        if source == "tokens":
            return frozenset({"query tokens", "tokens", "run scores"})
        return frozenset({"neighbours", "run scores", *(["query vectors", "vectors"] if queries == "encoded" else [])})

    @property
    def reads_scores(self) -> bool:
        """Whether the run's ranks or scores count, which they do not in eq. 1 and its scale-free form."""
        return self.params.uses_run or self.queries == "run"

    def run_scores(self, run: Run) -> np.ndarray:
        """(L,) float64: the scores of the run, zeros where they tell nothing beyond the order."""
        return scores_of_use(run.scores, run.offsets) if self.params.uses_run and self.params.run_weight else run.scores

    def describe(self) -> dict[str, Any]:
        """As `Reranker.describe`, and where similarities come from, unless it is vectors alone."""
        of = {} if self.source == "vectors" else {"source": self.source, "queries": self.queries}
        return super().describe() | of

    def prepare(self) -> None:
        """Look that the parameters can do without what is not known."""
        if self.queries == "none":
            self.params.without_query()

    @property
    def graph(self) -> NeighbourGraph:
        """Where similarities come from, if not from vectors."""
        graph: NeighbourGraph = self.inputs.neighbours
        return graph

    def rerank(self, run: Run, query_vectors: QueryVectors | None = None) -> Run:
        """As `Reranker.rerank`, many queries at a time; scores of reranked entries are s*."""
        if self.source == "neighbours":
            return self._from_graph(run, query_vectors)
        if self.source == "tokens":
            return super().rerank(run, query_vectors)
        queries, (rows_of, usable) = self._query_vectors(run, query_vectors), self._usable(run)
        notice_missing(run, usable, self.name)
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
        """(B, N) float32: s*; base: (B, N) or None, as in `rnn_similarity`."""
        return rnn_similarity(queries, candidates, self.params, base=base, lengths=lengths, threads=self.threads)

    def _from_graph(self, run: Run, query_vectors: QueryVectors | None) -> Run:
        queries, (rows_of, usable) = self._query_vectors(run, query_vectors), self._usable(run)
        notice_missing(run, usable, self.name)
        chosen = choose_head(run, self.params.context, usable)
        context, starts = np.flatnonzero(chosen), starts_of(chosen, run.offsets)
        rows, base = rows_of[run.rows[context]], self.run_scores(run)[context]
        products = self._products(run, queries, rows, starts) if self.queries == "encoded" else None
        if self.queries == "run":
            products = run.scores[context]
        new = np.empty(len(context), dtype=np.float64)
        for first in progress(range(0, len(run), QUERIES), unit="chunks", what="rerank"):
            own = starts[first : first + QUERIES + 1]
            part = slice(own[0], own[-1])
            new[part] = self._of_rows(rows[part], base[part], None if products is None else products[part], own)
        return with_new_head(run, chosen, new)

    def _products(self, run: Run, queries: Any, rows: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """(C,) float64: the inner products of the queries with their candidates, (C,) rows."""
        products = np.empty(len(rows))
        for number in range(len(run)):
            part = slice(starts[number], starts[number + 1])
            products[part] = inner_products(queries[number], self.vectors.fetch(rows[part]))
        return products

    def _of_rows(self, rows: np.ndarray, base: np.ndarray, products: Any, starts: np.ndarray) -> np.ndarray:
        """(n,) float32: s* of the entries of some contexts from the graph, of which number i begins at starts[i]."""
        if not len(rows):
            return np.empty(0, dtype=np.float32)
        graph, lengths = self.graph, np.diff(starts)
        graph.fetch(np.unique(rows))  # refuses what cannot be in a graph, and says where
        real = np.arange(lengths.max()) < lengths[:, None]  # (B, N)

        def padded(values: np.ndarray) -> np.ndarray:
            if real.all():
                return values.reshape(real.shape)
            in_contexts = np.zeros(real.shape, dtype=values.dtype)
            in_contexts[real] = values
            return in_contexts

        return graph_similarity(
            graph.edges,
            graph.weights,
            padded(rows),
            self.params,
            query=None if products is None else padded(products),
            base=padded(base),
            lengths=lengths,
            threads=self.threads,
        )[real]

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64: s* of the candidates of one query; without scores of a run, inner products stand for them."""
        if self.source == "tokens":
            return self._of_tokens(query, candidates)
        if self.source == "neighbours":
            products = inner_products(query.vector, candidates.vectors) if self.queries == "encoded" else None
            products = candidates.scores if self.queries == "run" else products
            bounds = np.array([0, len(candidates)])
            return self._of_rows(candidates.rows, candidates.scores, products, bounds).astype(np.float64)
        base = None if candidates.scores is None else candidates.scores[None]
        similarities = self._similar(query.vector[None], candidates.vectors[None], base, np.array([len(candidates)]))
        return similarities[0].astype(np.float64)

    def _of_tokens(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64: s* of the candidates of one query, which are as alike as `token_similarities` says."""
        source = self.inputs.tokens
        similarities = token_similarities(
            query.tokens, source.vectors, source.offsets, rows=candidates.rows, threads=self.threads
        )
        return given_similarity(similarities, self.params, base=candidates.scores).astype(np.float64)
