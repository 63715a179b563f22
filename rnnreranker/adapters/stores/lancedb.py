"""LanceDB: a reranker for `.rerank(...)` of vector, full-text and hybrid searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from rnnreranker.rnn.hits import params_of
from rnnreranker.rnn.params import RnnParams

require("lancedb", "reranking LanceDB's results", "'rnnreranker[lancedb]'")

from lancedb.rerankers import Reranker, RRFReranker  # noqa: E402

METRICS = {"l2": SQUARED_DISTANCE, "cosine": COSINE_DISTANCE, "dot": INNER_DISTANCE}
ROW = "_rowid"


class LanceDBRnnReranker(Reranker):
    """Reranks LanceDB's results by reciprocal nearest neighbours, with s* as `_relevance_score`, best first.

    LanceDB passes all hits of its `limit`, and no query vector: the `_distance` of a vector search replaces it; other
    searches need `query`. The first stage of a hybrid search is LanceDB's reciprocal rank fusion.

    Args:
        metric: of the search (`.metric(...)`): l2, cosine or dot; or the table, for its index's metric.
        query: the query's vector, (d,), or a function from its text to it; None = unknown. It also verifies the metric.
        vector: the selected column of the vectors; None = the only one.
        params: as `rerank_hits`.
        return_score: "relevance", or "all" to keep LanceDB's own scores too.

    Raises:
        InputError: another metric; several columns of vectors without a name, as `rerank_returned`.
    """

    def __init__(
        self,
        metric: Any = "l2",
        *,
        query: Callable[[str], Any] | Any = None,
        vector: str | None = None,
        params: RnnParams | Mapping[str, Any] | None = None,
        return_score: str = "relevance",
    ) -> None:
        super().__init__(return_score)
        self.metric = metric_of(METRICS, _of_index(metric, vector) if hasattr(metric, "index_stats") else metric)
        self.query, self.vector, self.params = query, vector, params_of(params)

    def __str__(self) -> str:
        return "LanceDBRnnReranker"

    def rerank_vector(self, query: str, vector_results: pyarrow.Table) -> pyarrow.Table:
        distances = column_of("LanceDB", vector_results, "_distance", "do not leave it out")
        return self._reranked(vector_results, distances, self.metric, self._query_vector(query))

    def rerank_fts(self, query: str, fts_results: pyarrow.Table) -> pyarrow.Table:
        scores = column_of("LanceDB", fts_results, "_score", "do not leave it out")
        return self._reranked(fts_results, scores, self.metric.of_fusion(), self._known(query))

    def rerank_hybrid(self, query: str, vector_results: pyarrow.Table, fts_results: pyarrow.Table) -> pyarrow.Table:
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
        name = self.vector or _only_vectors(table)
        vectors = column_of("LanceDB", table, name, f"select the column {name} too")
        ids = table[ROW].to_pylist() if ROW in table.column_names else list(range(len(table)))
        order, scores = rerank_returned(
            "LanceDB",
            ids,
            vectors_of(vectors),
            values.to_pylist(),
            metric,
            query_vector,
            self.params,
            advice=f"search with .where('{name} IS NOT NULL')",
        )
        own = [name for name in ("_score", "_distance") if self.score == "relevance" and name in table.column_names]
        best = table.take(pyarrow.array(order)).drop_columns(own)
        return best.append_column("_relevance_score", pyarrow.array(scores, type=pyarrow.float32()))


def _of_index(table: Any, vector: str | None) -> str:
    named = [index for index in table.list_indices() if vector in (None, *index.columns)]
    stats = [table.index_stats(index.name) for index in named]
    metrics = {one.distance_type for one in stats if one is not None and one.distance_type}
    if len(metrics) > 1:
        raise InputError(f"LanceDB: the table has indexes of {', '.join(sorted(metrics))}; name the column by vector=")
    return metrics.pop() if metrics else "l2"


def _only_vectors(table: pyarrow.Table) -> str:
    """The only column of vectors: lists of fixed length, else lists of floats; "vector" if there is none."""
    fixed = [field.name for field in table.schema if pyarrow.types.is_fixed_size_list(field.type)]
    lists = [
        field.name
        for field in table.schema
        if pyarrow.types.is_list(field.type) and pyarrow.types.is_floating(field.type.value_type)
    ]
    names = fixed or lists
    if len(names) > 1:
        raise InputError(
            f"LanceDB: the hits have the vectors {', '.join(names)}; name the column that was searched by vector="
        )
    return names[0] if names else "vector"
