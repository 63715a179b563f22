"""DuckDB: the rows of a query that orders by one of its functions of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnnreranker.adapters.stores.columns import column_of, vectors_of
from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import COSINE, COSINE_DISTANCE, DISTANCE, INNER, INNER_NEGATED, metric_of
from rnnreranker.rnn.params import RnnParams

if TYPE_CHECKING:
    import duckdb
    import pyarrow

FUNCTIONS = {
    "array_cosine_similarity": COSINE,
    "array_cosine_distance": COSINE_DISTANCE,
    "array_inner_product": INNER,
    "array_negative_inner_product": INNER_NEGATED,
    "array_distance": DISTANCE,
}


def rerank_duckdb(
    query_vector: Any,
    rows: duckdb.DuckDBPyRelation | pyarrow.Table,
    *,
    function: str = "array_cosine_similarity",
    id: str = "id",
    vector: str = "vector",
    score: str = "score",
    params: RnnParams | None = None,
) -> pyarrow.Table:
    """The rows in their new order, best first, with s* as another column, `rnn_score`.

    Args:
        query_vector: (d,); None = it is known by the scores alone.
        rows: of one query, `connection.sql(...)`, or as an Arrow table.
        function: of DuckDB, that the column `score` was made by.
        id, vector, score: the names of these columns.
        params: as `rerank_hits`.

    Raises:
        InputError: another function, a column that is not there, as `rerank_returned`.
    """
    import pyarrow

    own = metric_of(FUNCTIONS, function, "function")
    table = rows if isinstance(rows, pyarrow.Table) else rows.to_arrow_table()
    advice = "select it, or name another"
    ids, vectors, values = (column_of("DuckDB", table, name, advice) for name in (id, vector, score))
    order, scores = rerank_returned(
        "DuckDB",
        ids.to_pylist(),
        vectors_of(vectors),
        values.to_pylist(),
        own,
        query_vector,
        params,
        advice=f"leave out rows where {vector} is null",
    )
    return table.take(pyarrow.array(order)).append_column("rnn_score", pyarrow.array(scores))
