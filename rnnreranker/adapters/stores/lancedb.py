"""LanceDB: a reranker for `.rerank(...)` behind vector, full-text and hybrid searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow

from rnnreranker.adapters.stores.columns import column_of, vectors_of
from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import (
    COSINE_DISTANCE,
    INNER_DISTANCE,
    SQUARED_DISTANCE,
    StoreMetric,
    metric_of,
)
from rnnreranker.base.errors import InputError, require
from rnnreranker.rnn.params import RnnParams

require("lancedb", "reranking LanceDB's results", "'rnnreranker[lancedb]'")

from lancedb.rerankers import Reranker, RRFReranker  # noqa: E402

METRICS = {"l2": SQUARED_DISTANCE, "cosine": COSINE_DISTANCE, "dot": INNER_DISTANCE}
ROW = "_rowid"


class LanceDBRnnReranker(Reranker):
    """Reranks what LanceDB returns by reciprocal nearest neighbours, with s* as `_relevance_score`, best first.

    LanceDB hands on all hits of its `limit`, so that this is how many are reranked, and no query vector: a vector
    search says by `_distance` how near query and hits are, the other two searches need `query`. Of a hybrid search the
    first stage is LanceDB's own reciprocal rank fusion.

    Args:
        metric: of the search (`.metric(...)`): l2, which is LanceDB's default, cosine or dot.
        query: the query's vector, (d,), or what makes it of the query's text; None = not known.
        vector: the column with the vectors, which must be among those that are selected.
        params: as `rerank_hits`.
        return_score: "relevance", or "all": LanceDB's own scores stay beside s*.

    Raises:
        InputError: another metric; as each search is reranked, as `rerank_returned`.
    """

    def __init__(
        self,
        metric: Any = "l2",
        *,
        query: Callable[[str], Any] | Any = None,
        vector: str = "vector",
        params: RnnParams | None = None,
        return_score: str = "relevance",
    ) -> None:
        super().__init__(return_score)
        self.metric = metric_of(METRICS, metric)
        self.query, self.vector, self.params = query, vector, params

    def __str__(self) -> str:
        return "LanceDBRnnReranker"

    def rerank_vector(self, query: str, vector_results: pyarrow.Table) -> pyarrow.Table:
        """Of a vector search."""
        distances = column_of("LanceDB", vector_results, "_distance", "do not leave it out")
        return self._reranked(vector_results, distances, self.metric, self._query_vector(query))

    def rerank_fts(self, query: str, fts_results: pyarrow.Table) -> pyarrow.Table:
        """Of a full-text search, whose scores are the first stage."""
        scores = column_of("LanceDB", fts_results, "_score", "do not leave it out")
        return self._reranked(fts_results, scores, self.metric.of_fusion(), self._known(query))

    def rerank_hybrid(self, query: str, vector_results: pyarrow.Table, fts_results: pyarrow.Table) -> pyarrow.Table:
        """Of both, fused by reciprocal ranks."""
        asked = self._known(query)
        fused = RRFReranker(return_score="all").rerank_hybrid(query, vector_results, fts_results)
        scores = fused["_relevance_score"]
        table = fused.drop_columns(["_relevance_score"])
        return self._reranked(table, scores, self.metric.of_fusion(), asked)

    def _query_vector(self, text: str) -> Any:
        if callable(self.query):
            return None if text is None else self.query(text)
        return self.query

    def _known(self, text: str) -> Any:
        if self.query is None:
            raise InputError(
                "query=None: full-text and hybrid searches of LanceDB say nothing of the query's vector; "
                "give LanceDBRnnReranker query=, the vector or a function of the text"
            )
        return self._query_vector(text)

    def _reranked(
        self, table: pyarrow.Table, values: pyarrow.ChunkedArray, metric: StoreMetric, query_vector: Any
    ) -> pyarrow.Table:
        advice = f"select the column {self.vector} too"
        vectors = column_of("LanceDB", table, self.vector, advice)
        ids = table[ROW].to_pylist() if ROW in table.column_names else list(range(len(table)))
        order, scores = rerank_returned(
            "LanceDB",
            ids,
            vectors_of(vectors),
            values.to_pylist(),
            metric,
            query_vector,
            self.params,
            advice=f"search with .where('{self.vector} IS NOT NULL')",
        )
        own = [name for name in ("_score", "_distance") if self.score == "relevance" and name in table.column_names]
        best = table.take(pyarrow.array(order)).drop_columns(own)
        return best.append_column("_relevance_score", pyarrow.array(scores, type=pyarrow.float32()))
