"""LanceDB: a reranker for `.rerank(...)` of vector, full-text and hybrid searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow

from rnnreranker.adapters.stores.hits import Params, column_of, rerank_returned
from rnnreranker.adapters.stores.metrics import metric_of
from rnnreranker.base.errors import InputError, require
from rnnreranker.rnn.hits import params_of

require("lancedb", "reranking LanceDB's results", "'rnnreranker[lancedb]'")

from lancedb.rerankers import Reranker, RRFReranker  # noqa: E402


class LanceDBRnnReranker(Reranker):
    """Reranks LanceDB's results by reciprocal nearest neighbours, with s* as `_relevance_score`, best first.

    LanceDB passes all hits of its `limit`, and no query vector, so `query` gives it. The first stage of a hybrid search
    is LanceDB's reciprocal rank fusion.

    Args:
        metric: of the search (`.metric(...)`): l2, cosine or dot.
        query: the query's vector, (d,), or a function from its text to it.
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
        query: Callable[[str], Any] | Any,
        vector: str | None = None,
        params: Params = None,
        return_score: str = "relevance",
    ) -> None:
        super().__init__(return_score)
        metric_of("LanceDB", metric)
        self.metric, self.query, self.vector, self.params = metric, query, vector, params_of(params)

    def rerank_vector(self, query: str, vector_results: pyarrow.Table) -> pyarrow.Table:
        return self._reranked(query, vector_results, "_distance")

    def rerank_fts(self, query: str, fts_results: pyarrow.Table) -> pyarrow.Table:
        return self._reranked(query, fts_results, "_score", fused=True)

    def rerank_hybrid(self, query: str, vector_results: pyarrow.Table, fts_results: pyarrow.Table) -> pyarrow.Table:
        fused = RRFReranker(return_score="all").rerank_hybrid(query, vector_results, fts_results)
        return self._reranked(query, fused, "_relevance_score", fused=True)

    def _reranked(self, text: str, table: pyarrow.Table, of: str, fused: bool = False) -> pyarrow.Table:
        query = self.query(text) if callable(self.query) else self.query
        name = self.vector or _only_vectors(table)
        order, scores = rerank_returned(
            metric_of("LanceDB", self.metric, fused=fused),
            range(len(table)),
            column_of("LanceDB", table, name, f"select the column {name} too"),
            column_of("LanceDB", table, of, "do not leave it out"),
            query,
            self.params,
            f"search with .where('{name} IS NOT NULL')",
        )
        own = ["_relevance_score", *(("_score", "_distance") if self.score == "relevance" else ())]
        best = table.take(pyarrow.array(order)).drop_columns([one for one in own if one in table.column_names])
        return best.append_column("_relevance_score", pyarrow.array(scores, type=pyarrow.float32()))


def _only_vectors(table: pyarrow.Table) -> str:
    """The only column of vectors; "vector" if there is none."""
    names = [field.name for field in table.schema if pyarrow.types.is_fixed_size_list(field.type)]
    if len(names) > 1:
        raise InputError(
            f"LanceDB: the hits have the vectors {', '.join(names)}; name the column that was searched by vector="
        )
    return names[0] if names else "vector"
