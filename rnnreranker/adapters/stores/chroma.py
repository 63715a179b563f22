"""Chroma: the result of `collection.query(..., include=["embeddings", "distances"])`, for any number of queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import COSINE_DISTANCE, INNER_DISTANCE, SQUARED_DISTANCE, metric_of
from rnnreranker.base.errors import InputError
from rnnreranker.base.given import array_of
from rnnreranker.rnn.params import RnnParams

METRICS = {"l2": SQUARED_DISTANCE, "cosine": COSINE_DISTANCE, "ip": INNER_DISTANCE}
OF_HITS = ("ids", "embeddings", "distances", "documents", "metadatas", "uris", "data")
ADVICE = 'call query with include=["embeddings", "distances"]'


def rerank_chroma(
    query_vectors: Any,
    result: Mapping[str, Any],
    *,
    metric: Any = "l2",
    params: RnnParams | Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The result with the hits of every query in their new order, and s* as "scores"; distances stay those of Chroma.

    Args:
        query_vectors: (Q, d), those of `query_embeddings`; None = unknown.
        result: of `collection.query`.
        metric: the space of the collection (`configuration={"hnsw": {"space": …}}`): l2, cosine or ip, or the
            collection.
        params: as `rerank_hits`.

    Raises:
        InputError: another metric, another number of queries, a result without embeddings, as `rerank_returned`.
    """
    own, asked = metric_of(METRICS, _space(metric)), len(result["ids"])
    if asked and isinstance(result["ids"][0], str):
        raise InputError("Chroma: a result of collection.get, which has no distances; expected one of collection.query")
    if result.get("embeddings") is None:
        raise InputError(f"Chroma: the result has no embeddings; {ADVICE}")
    queries: Any = [None] * asked if query_vectors is None else array_of(query_vectors, "query_vectors")
    if np.ndim(queries) < 1 or len(queries) != asked:
        raise InputError(
            f"query_vectors has shape {np.shape(queries)}: expected ({asked}, d), a row for each query of the result"
        )
    columns = {name: result[name] for name in OF_HITS if result.get(name) is not None}
    turned: dict[str, Any] = {**result, **{name: [] for name in columns}, "scores": []}
    for query in range(asked):
        order, scores = rerank_returned(
            "Chroma",
            result["ids"][query],
            result["embeddings"][query],
            columns["distances"][query] if "distances" in columns else None,
            own,
            queries[query],
            params,
            advice=ADVICE,
        )
        for name, column in columns.items():
            turned[name].append([column[query][position] for position in order.tolist()])
        turned["scores"].append(scores.tolist())
    return turned


def _space(metric: Any) -> Any:
    if not hasattr(metric, "configuration_json"):
        return metric
    kinds = [metric.configuration_json.get(kind) for kind in ("hnsw", "spann")]
    return next((kind["space"] for kind in kinds if kind), "l2")
