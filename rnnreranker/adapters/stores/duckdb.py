"""DuckDB: the rows of a query that orders by a function of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rnnreranker.adapters.stores.columns import column_of, vectors_of
from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import COSINE, COSINE_DISTANCE, DISTANCE, INNER, INNER_NEGATED, metric_of
from rnnreranker.base.errors import InputError
from rnnreranker.rnn.params import RnnParams

if TYPE_CHECKING:
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
    rows: Any,
    *,
    function: str = "array_cosine_similarity",
    id: str = "id",
    vector: str = "vector",
    score: str = "score",
    params: RnnParams | Mapping[str, Any] | None = None,
) -> pyarrow.Table:
    """The rows in their new order, best first, with s* in the column `rnn_score`.

    Args:
        query_vector: (d,); None = unknown.
        rows: of one query, `connection.sql(...)`, or the result of its `arrow`, `df`, `pl` or `fetchnumpy`.
        function: of DuckDB, that made the column `score`; `list_` forms and `dot_product` count as the others.
        id, vector, score: the names of these columns.

    Raises:
        InputError: another function, rows without column names, a missing column, as `rerank_returned`.
    """
    import pyarrow

    usual = str(function).lower().replace("list_", "array_").replace("dot_product", "inner_product")
    own = metric_of(FUNCTIONS, usual if usual in FUNCTIONS else function, "function")
    try:
        own_form = next((name for name in ("to_arrow_table", "to_arrow") if hasattr(rows, name)), "")  # DuckDB, polars
        table = getattr(rows, own_form)() if own_form else pyarrow.table(rows)
    except (TypeError, ValueError, pyarrow.ArrowException):
        raise InputError(
            f"DuckDB: rows is a {type(rows).__name__}, which is no table of named columns; give "
            "connection.sql(...) itself, or what its .arrow(), .df() or .pl() returns"
        ) from None
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
