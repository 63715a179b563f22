"""Faiss: search of an index in memory, reranked by its own vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.adapters.stores.hits import NONE, rerank_returned
from rnnreranker.adapters.stores.metrics import INNER, SQUARED_DISTANCE, StoreMetric
from rnnreranker.base.errors import InputError
from rnnreranker.base.given import array_of, count_of
from rnnreranker.parts.vectors.faiss_folder import WITHOUT_VECTORS
from rnnreranker.rnn.hits import RerankedHits, params_of
from rnnreranker.rnn.params import RnnParams

if TYPE_CHECKING:
    import faiss


def rerank_faiss(
    query_vectors: Any,
    index: faiss.Index,
    hits: int | None = None,
    *,
    params: RnnParams | Mapping[str, Any] | None = None,
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
    metrics = {faiss.METRIC_INNER_PRODUCT: INNER, faiss.METRIC_L2: SQUARED_DISTANCE}
    if index.metric_type not in metrics:
        raise InputError(f"index has metric number {index.metric_type}: expected METRIC_INNER_PRODUCT or METRIC_L2")
    queries = np.ascontiguousarray(array_of(query_vectors, "query_vectors"), dtype=np.float32)
    if queries.ndim != 2 or queries.shape[1] != index.d:
        raise InputError(f"query_vectors has shape {queries.shape}: expected (queries, {index.d}), as the index")
    if not index.ntotal:
        return [NONE for _ in queries]
    holder, names = index, None
    if isinstance(index, faiss.IndexIDMap):  # IndexIDMap2 is one too
        holder, names = faiss.downcast_index(index.index), faiss.vector_to_array(index.id_map)
    try:
        if (kind := type(holder).__name__) in WITHOUT_VECTORS:
            raise RuntimeError("its codes stand for no vectors")
        distances, rows, vectors = holder.search_and_reconstruct(queries, min(asked, index.ntotal))
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0].split(": ")[-1]
        raise InputError(
            f"index is of type {kind}, which gives no vectors back ({reason}); use one that does, as Flat, HNSW or IVF"
        ) from None
    metric = metrics[index.metric_type]
    return [
        _reranked(*one, names=names, metric=metric, params=params)
        for one in zip(queries, distances, rows, vectors, strict=True)
    ]


def _reranked(
    query: np.ndarray,
    values: np.ndarray,
    rows: np.ndarray,
    vectors: np.ndarray,
    *,
    names: np.ndarray | None,
    metric: StoreMetric,
    params: RnnParams,
) -> RerankedHits:
    real = rows >= 0
    ids = rows[real] if names is None else names[rows[real]]
    order, scores = rerank_returned("Faiss", ids.tolist(), vectors[real], values[real], metric, query, params)
    return RerankedHits(ids[order], scores)
