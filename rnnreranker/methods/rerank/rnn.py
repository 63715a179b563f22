"""Reranking by reciprocal nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base.errors import InputError, brief
from rnnreranker.base.method import SOURCES, Inputs
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker, inner_products
from rnnreranker.rnn import RnnParams, rnn_similarity
from rnnreranker.rnn.api import given_similarity
from rnnreranker.rnn.graph import graph_similarity
from rnnreranker.rnn.maxsim import token_similarities
from rnnreranker.runs.head import scores_of_use

if TYPE_CHECKING:
    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.parts.vectors import VectorSource
    from rnnreranker.runs import Run

ROWS = 2**16  # candidates reranked at a time from a graph

Source = Literal["vectors", "neighbours", "tokens"]
Queries = Literal["encoded", "run", "none"]


class RnnReranker(Reranker):
    """Reranks runs by s*, from vectors, tokens or a graph of neighbours: see `RnnParams`.

    If the run's scores say nothing beyond its order (`scores_of_use`), only ranks count. Similarities from tokens:
    `rnn.maxsim.token_similarities`; from a graph: `graph_similarity`.

    Args:
        inputs: as in `Reranker`; or a graph, which stands for `Inputs(neighbours=it)`.
        source: of similarities; None = the graph if given alone, else "vectors".
        queries: with a graph, the similarities to the query. "encoded": inner products of query vectors and `vectors`;
            "run": the run's scores; "none": unknown (`RnnParams.without_query`). None = "encoded" with vectors, else
            "none".
        vectors: beside a graph, those of its documents.
        params, options: as in `Reranker`.

    Raises:
        InputError: as `Reranker`; `queries` that the source lacks; parameters that need unknown similarities.
    """

    name = "rnn"
    needs = frozenset({"query vectors", "vectors", "run scores"})
    Params = RnnParams
    params: RnnParams
    takes_source = True
    at_once = 2**22

    def __init__(
        self,
        inputs: Inputs | VectorSource | NeighbourGraph,
        params: RnnParams | None = None,
        *,
        source: Source | None = None,
        queries: Queries | None = None,
        vectors: VectorSource | None = None,
        **options: Any,
    ) -> None:
        from rnnreranker.parts.neighbours import NeighbourGraph

        for name, value, words in (("source", source, SOURCES["from"]), ("queries", queries, SOURCES["queries"])):
            if value is not None and not (isinstance(value, str) and value in words):
                raise InputError(f"{name}={brief(value)}: expected one of {', '.join(words)}")
        if isinstance(inputs, NeighbourGraph):
            source, inputs = "neighbours", Inputs(neighbours=inputs, vectors=vectors)
        self.source, from_graph = source or "vectors", source == "neighbours"
        known = not from_graph or not isinstance(inputs, Inputs) or inputs.has("vectors")
        self.queries = queries or ("encoded" if known else "none")
        if not from_graph and self.queries != "encoded":
            raise InputError(f"queries={queries!r}: with {self.source} the query has its own; expected 'encoded'")
        self.rows_at_once = ROWS if from_graph else 0
        self.needs = self.needs_from(self.source, self.queries)  # type: ignore[misc]  # of this one, not of the method
        super().__init__(inputs, params, **options)

    @classmethod
    def needs_from(cls, source: str, queries: str) -> frozenset[str]:
        """The inputs that a source needs."""
        if source == "tokens":
            return frozenset({"query tokens", "tokens", "run scores"})
        of_graph = ["neighbours"] if source == "neighbours" else []
        return frozenset({"run scores", *of_graph, *(["query vectors", "vectors"] if queries == "encoded" else [])})

    @property
    def reads_scores(self) -> bool:
        """Whether the run's ranks or scores count; not in eq. 1 and its scale-free form."""
        return self.params.uses_run or self.queries == "run"

    def run_scores(self, run: Run) -> np.ndarray:
        """(L,) float64: the run's scores, zeros if they say nothing beyond the order."""
        return scores_of_use(run.scores, run.offsets) if self.params.uses_run and self.params.run_weight else run.scores

    def describe(self) -> dict[str, Any]:
        of = {} if self.source == "vectors" else {"source": self.source, "queries": self.queries}
        return super().describe() | of

    def prepare(self) -> None:
        if self.queries == "none":
            self.params.without_query()

    def scores_of(self, queries: Sequence[Query], candidates: Candidates, bounds: np.ndarray) -> np.ndarray:
        """(n,) float64: s* of the candidates of several queries."""
        if self.source == "tokens" or not len(candidates):
            return super().scores_of(queries, candidates, bounds)
        lengths = np.diff(bounds)
        real = np.arange(lengths.max()) < lengths[:, None]  # (B, N)

        def padded(values: Any) -> Any:
            if values is None or real.all():
                return None if values is None else values.reshape(*real.shape, *values.shape[1:])
            in_contexts = np.zeros((*real.shape, *values.shape[1:]), dtype=values.dtype)
            in_contexts[real] = values
            return in_contexts

        how: dict[str, Any] = {"lengths": lengths, "threads": self.threads, "base": padded(candidates.scores)}
        if self.source == "vectors":
            vectors = np.stack([query.vector for query in queries])
            return self._similar(vectors, padded(candidates.vectors), **how)[real]
        graph, products = self.graph, candidates.in_run if self.queries == "run" else None
        graph.fetch(np.unique(candidates.rows))  # refuses what cannot be in a graph, and says where
        if self.queries == "encoded":
            own = np.split(candidates.vectors, bounds[1:-1])
            products = np.concatenate([inner_products(one.vector, v) for one, v in zip(queries, own, strict=True)])
        rows, products = padded(candidates.rows), padded(products)
        return graph_similarity(graph.edges, graph.weights, rows, self.params, query=products, **how)[real]

    def _similar(self, queries: np.ndarray, candidates: np.ndarray, **how: Any) -> np.ndarray:
        """(B, N) float32: s* from vectors, (B, d) and (B, N, d)."""
        return rnn_similarity(queries, candidates, self.params, **how)

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64: s* of the candidates of one query."""
        if self.source != "tokens":
            return self.scores_of([query], candidates, np.array([0, len(candidates)])).astype(np.float64)
        source = self.inputs.tokens
        similarities = token_similarities(
            query.tokens, source.vectors, source.offsets, rows=candidates.rows, threads=self.threads
        )
        return given_similarity(similarities, self.params, base=candidates.scores).astype(np.float64)
