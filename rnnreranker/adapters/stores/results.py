"""What Faiss, Qdrant, Chroma, Milvus and DuckDB return for a query, reranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.adapters.stores.hits import NONE, Params, column_of, pairs, rerank_returned
from rnnreranker.adapters.stores.metrics import metric_of
from rnnreranker.base.errors import InputError, array_of, count_of
from rnnreranker.parts.vectors.faiss_folder import WITHOUT_VECTORS
from rnnreranker.rnn.hits import RerankedHits, params_of

if TYPE_CHECKING:
    import faiss
    import pyarrow
    from qdrant_client.models import ScoredPoint

OF_PANDAS = "__index_level_"  # columns that pyarrow makes of the index of a data frame


def rerank_faiss(
    query_vectors: Any, index: faiss.Index, hits: int | None = None, *, params: Params = None
) -> list[RerankedHits]:
    """For every query the ids of its hits by s*, best first, (n,) int64, and their s*, (n,) float32.

    Vectors are those of `search_and_reconstruct`: exact from flat indexes, decoded from quantised ones.

    Args:
        query_vectors: (Q, d).
        index: with inner products or L2 as its metric; IDMaps give their own ids.
        hits: of a query; None = `params.context`.

    Raises:
        InputError: another metric, `hits` below 1, an index without vectors, as `rerank_returned`.
    """
    import faiss

    params = params_of(params)
    asked = params.context if hits is None else count_of(hits, "hits")
    known = {faiss.METRIC_INNER_PRODUCT: "METRIC_INNER_PRODUCT", faiss.METRIC_L2: "METRIC_L2"}
    metric = metric_of("Faiss", known.get(index.metric_type, index.metric_type))
    queries = np.ascontiguousarray(array_of(query_vectors, "query_vectors"), dtype=np.float32)
    if queries.ndim != 2 or queries.shape[1] != index.d:
        raise InputError(f"query_vectors has shape {queries.shape}: expected (queries, {index.d}), as the index")
    if not index.ntotal:
        return [NONE for _ in queries]
    holder, names = index, None
    if isinstance(index, faiss.IndexIDMap):  # IndexIDMap2 is one too
        holder, names = faiss.downcast_index(index.index), faiss.vector_to_array(index.id_map)
    try:
        if type(holder).__name__ in WITHOUT_VECTORS:
            raise RuntimeError
        returned = holder.search_and_reconstruct(queries, min(asked, index.ntotal))
    except RuntimeError:
        kind = type(holder).__name__
        raise InputError(f"index is of type {kind}, which gives no vectors back; use Flat, HNSW or IVF") from None
    best = []
    for query, values, rows, vectors in zip(queries, *returned, strict=True):
        real = rows >= 0
        ids = rows[real] if names is None else names[rows[real]]
        order, scores = rerank_returned(metric, ids.tolist(), vectors[real], values[real], query, params)
        best.append(RerankedHits(ids[order], scores))
    return best


def rerank_qdrant(
    query_vector: Any,
    points: Any,
    *,
    metric: Any = "Cosine",
    using: str | None = None,
    fused: bool = False,
    params: Params = None,
) -> list[ScoredPoint]:
    """The points in their new order, best first, with s* as their `score`; other fields stay.

    Args:
        query_vector: (d,).
        points: the result of `client.query_points(..., with_vectors=True)`, or its points.
        metric: of the collection: Cosine, Dot or Euclid, or Qdrant's `Distance`.
        using: the name of the vector, if points have several.
        fused: the scores are those of a fusion (`FusionQuery`), higher is better.

    Raises:
        InputError: another metric, points without that vector, as `rerank_returned`.
    """
    hits = _of_one_query("Qdrant", getattr(points, "points", points), "score")
    best = rerank_returned(
        metric_of("Qdrant", metric, fused=fused),
        [hit.id for hit in hits],
        [_named(hit.vector, using) for hit in hits],
        [hit.score for hit in hits],
        query_vector,
        params,
        "call query_points with with_vectors=True",
    )
    return [hits[row].model_copy(update={"score": score}) for row, score in pairs(best)]


def _of_one_query(store: str, hits: Any, has: str) -> Any:
    """The hits, which have an attribute; InputError: they are something else."""
    for hit in hits:
        if not hasattr(hit, has):
            raise InputError(f"{store}: got a {type(hit).__name__} among the hits; expected the hits of one query")
    return hits


def _named(vectors: Any, using: str | None) -> Any:
    """The vector of a name; a single one needs none."""
    if not isinstance(vectors, dict):
        return vectors
    name = next(iter(vectors)) if using is None and len(vectors) == 1 else using
    if name not in vectors:
        raise InputError(f"Qdrant: using={using!r}: expected one of {', '.join(sorted(vectors))}")
    return vectors[name]


def rerank_chroma(
    query_vectors: Any, result: Mapping[str, Any], *, metric: Any = "l2", params: Params = None
) -> dict[str, Any]:
    """The result with the hits of every query in their new order, and s* as "scores"; distances stay those of Chroma.

    Args:
        query_vectors: (Q, d), those of `query_embeddings`.
        result: of `collection.query(..., include=["embeddings", "distances"])`.
        metric: the space of the collection (`configuration={"hnsw": {"space": …}}`): l2, cosine or ip.
        params: as `rerank_hits`.

    Raises:
        InputError: another metric, another number of queries, a result without embeddings, as `rerank_returned`.
    """
    own, asked, advice = (
        metric_of("Chroma", metric),
        len(result["ids"]),
        'query with include=["embeddings", "distances"]',
    )
    columns = {name: column for name, column in result.items() if column is not None and name != "included"}
    if "embeddings" not in columns:
        raise InputError(f"Chroma: the result has no embeddings; {advice}")
    queries = array_of(query_vectors, "query_vectors")
    if queries.shape[:1] != (asked,):
        raise InputError(
            f"query_vectors has shape {queries.shape}: expected ({asked}, d), a row for each query of the result"
        )
    turned: dict[str, Any] = {**result, **{name: [] for name in columns}, "scores": []}
    for number, query in enumerate(queries):
        own_hits = {name: column[number] for name, column in columns.items()}
        values = own_hits.get("distances")
        order, scores = rerank_returned(own, own_hits["ids"], own_hits["embeddings"], values, query, params, advice)
        for name, column in own_hits.items():
            turned[name].append([column[position] for position in order.tolist()])
        turned["scores"].append(scores.tolist())
    return turned


def rerank_milvus(
    query_vector: Any,
    hits: Sequence[Any],
    *,
    vector: str = "vector",
    metric: Any = "COSINE",
    fused: bool = False,
    params: Params = None,
) -> list[dict[str, Any]]:
    """The hits of one query in their new order, best first, each with s* as "score"; other keys stay.

    Args:
        query_vector: (d,).
        hits: of one query, as `client.search(..., output_fields=["vector"])[0]`.
        vector: the field of the vectors.
        metric: of the field's index: COSINE, IP or L2.
        fused: distances are scores of a fusion (`hybrid_search`), higher is better.

    Raises:
        InputError: another metric, hits without that field, as `rerank_returned`.
    """
    hits = _of_one_query("Milvus", hits, "keys")
    best = rerank_returned(
        metric_of("Milvus", metric, fused=fused),
        [getattr(hit, "id", position) for position, hit in enumerate(hits)],
        [hit["entity"].get(vector) for hit in hits],
        [hit["distance"] for hit in hits],
        query_vector,
        params,
        f'search with output_fields=["{vector}"]',
    )
    return [{**hits[row], "score": score} for row, score in pairs(best)]


def rerank_duckdb(
    query_vector: Any,
    rows: Any,
    *,
    function: str = "array_cosine_similarity",
    id: str = "id",
    vector: str = "vector",
    score: str = "score",
    params: Params = None,
) -> pyarrow.Table:
    """The rows in their new order, best first, with s* in the column `rnn_score`, in place of an earlier one.

    Args:
        query_vector: (d,).
        rows: of one query, `connection.sql(...)`, or the result of its `arrow`, `df`, `pl` or `fetchnumpy`.
        function: of DuckDB, that made the column `score`; `list_` forms and `dot_product` count as the others.
        id, vector, score: the names of these columns.

    Raises:
        InputError: another function, rows without column names, a missing column, as `rerank_returned`.
    """
    import pyarrow

    usual = str(function).lower().replace("list_", "array_").replace("dot_product", "inner_product")
    own = metric_of("DuckDB", usual)
    try:
        table = pyarrow.table(rows.to_arrow() if hasattr(rows, "to_arrow") else rows)  # Polars: views cannot be taken
    except (TypeError, ValueError, pyarrow.ArrowException):
        raise InputError(f"DuckDB: rows is a {type(rows).__name__}; expected connection.sql(...) itself") from None
    ids, vectors, values = (
        column_of("DuckDB", table, name, "select it, or name another") for name in (id, vector, score)
    )
    lost = f"leave out rows where {vector} is null"
    if without := table.column(id).null_count:  # NumPy makes integers beside them floats
        raise InputError(f"DuckDB: {without} of {len(ids)} rows have no {id}; leave out rows where {id} is null")
    order, scores = rerank_returned(own, ids.tolist(), vectors, values, query_vector, params, lost)
    kept = table.select([one for one in table.column_names if one != "rnn_score" and not one.startswith(OF_PANDAS)])
    return kept.take(pyarrow.array(order)).append_column("rnn_score", pyarrow.array(scores))
