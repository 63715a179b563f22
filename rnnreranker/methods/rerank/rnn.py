"""Reranking by reciprocal nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from rnnreranker.base.errors import InputError, brief
from rnnreranker.base.method import SOURCES, Inputs
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker
from rnnreranker.parts.vectors.exact import inner_products
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.api import of_vectors
from rnnreranker.rnn.contexts import ContextBatch, similarities
from rnnreranker.rnn.graph import of_graph
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
    reciprocal: ClassVar[bool] = True  # whether neighbours must be mutual

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

        if isinstance(inputs, NeighbourGraph):
            source, inputs = "neighbours", Inputs(neighbours=inputs, vectors=vectors)
        for name, value, words in zip(("source", "queries"), (source, queries), SOURCES.values(), strict=True):
            if value is not None and not (isinstance(value, str) and value in words):
                raise InputError(f"{name}={brief(value)}: expected one of {', '.join(words)}")
        self.source, from_graph = source or "vectors", source == "neighbours"
        alone = from_graph and isinstance(inputs, Inputs) and not inputs.has("vectors")
        self.queries = queries or ("none" if alone else "encoded")
        if not from_graph and self.queries != "encoded":
            raise InputError(f"queries={queries!r}: with {self.source} the query has its own; expected 'encoded'")
        self.rows_at_once = ROWS if from_graph else 0
        super().__init__(inputs, params, **options)

    @classmethod
    def needs_from(cls, source: str, queries: str, params: RnnParams) -> frozenset[str]:
        """The inputs that a source needs; scores of the run only if they or its ranks count."""
        of_source = {"tokens": ["query tokens", "tokens"], "neighbours": ["neighbours"], "vectors": []}[source]
        of_queries = ["query vectors", "vectors"] if queries == "encoded" and source != "tokens" else []
        return frozenset([*of_source, *of_queries, *(["run scores"] if params.uses_run or queries == "run" else [])])

    def run_scores(self, run: Run) -> np.ndarray:
        """(L,) float64: the run's scores; zeros if they say nothing beyond the order and are no similarities."""
        counts = self.params.uses_run and self.params.run_weight and self.queries != "run"
        return scores_of_use(run.scores, run.offsets) if counts else run.scores

    def describe(self) -> dict[str, Any]:
        of = {} if self.source == "vectors" else {"source": self.source, "queries": self.queries}
        return super().describe() | of

    def prepare(self) -> None:
        if self.queries == "none":
            self.params.without_query()
        self.needs = self.needs_from(self.source, self.queries, self.params)  # type: ignore[misc]  # of this one

    def scores_of(self, queries: Sequence[Query], candidates: Candidates, bounds: np.ndarray) -> np.ndarray:
        """(n,) float32: s* of the candidates of several queries."""
        lengths = np.diff(bounds)
        real = np.arange(lengths.max(initial=1)) < lengths[:, None]  # (B, N)

        def padded(values: Any) -> Any:
            if values is None:
                return None
            in_contexts = np.zeros(real.shape, dtype=values.dtype)
            in_contexts[real] = values
            return in_contexts

        params, base = self.params, padded(candidates.scores)
        if self.source == "neighbours":
            graph, products = self.graph, candidates.scores if self.queries == "run" else None
            graph.fetch(np.unique(candidates.rows))  # refuses what cannot be in a graph, and says where
            if self.queries == "encoded":
                own = np.split(candidates.vectors, bounds[1:-1])
                products = np.concatenate([inner_products(one.vector, v) for one, v in zip(queries, own, strict=True)])
            params = params.of_graph(products is not None)
            contexts = of_graph(graph.edges, graph.weights, padded(candidates.rows), padded(products), lengths)
        elif self.source == "vectors":

            def load(row: int, into: np.ndarray) -> np.ndarray:
                into[0], into[1:] = queries[row].vector, candidates.vectors[bounds[row] : bounds[row + 1]]
                return into

            contexts = of_vectors(load, lengths, candidates.vectors.shape[1])
        else:
            contexts = ContextBatch(lengths + 1, self._of_tokens(queries, candidates.rows, bounds), str)
        how: dict[str, Any] = {"threads": self.threads, "reciprocal": self.reciprocal}
        return similarities(contexts, params, base, real.shape[1], **how)[real]

    def _of_tokens(self, queries: Sequence[Query], rows: np.ndarray, bounds: np.ndarray) -> Any:
        """What fills the matrices of contexts from the tokens of queries and documents."""
        source = self.inputs.tokens

        def fill(part: slice, gram: np.ndarray, shift_free: bool) -> None:
            for one, row in zip(gram, range(part.start, part.stop), strict=True):
                own = rows[bounds[row] : bounds[row + 1]]
                one[: len(own) + 1, : len(own) + 1] = token_similarities(
                    queries[row].tokens, source.vectors, source.offsets, rows=own, threads=self.threads
                )

        return fill

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64: s* of the candidates of one query."""
        return self.scores_of([query], candidates, np.array([0, len(candidates)])).astype(np.float64)
