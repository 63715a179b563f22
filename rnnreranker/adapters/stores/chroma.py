"""Chroma: what `collection.query(..., include=["embeddings", "distances"])` returned, for any number of queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import COSINE_DISTANCE, INNER_DISTANCE, SQUARED_DISTANCE, metric_of
from rnnreranker.base.errors import InputError
from rnnreranker.rnn.params import RnnParams

METRICS = {"l2": SQUARED_DISTANCE, "cosine": COSINE_DISTANCE, "ip": INNER_DISTANCE}
OF_HITS = ("ids", "embeddings", "distances", "documents", "metadatas", "uris", "data")
ADVICE = 'call query with include=["embeddings", "distances"]'


def rerank_chroma(
    query_vectors: Any,
    result: Mapping[str, Any],
    *,
    metric: Any = "l2",
    params: RnnParams | None = None,
) -> dict[str, Any]:
    """The result with the hits of every query in their new order, and s* as "scores"; distances stay those of Chroma.

    Args:
        query_vectors: (Q, d), those of `query_embeddings`; None = queries are known by their distances alone.
        result: of `collection.query`.
        metric: the space of the collection (`configuration={"hnsw": {"space": …}}`): l2, cosine or ip.
        params: as `rerank_hits`.

    Raises:
        InputError: another metric, another number of queries, a result without embeddings, as `rerank_returned`.
    """
    own, asked = metric_of(METRICS, metric), len(result["ids"])
    if result.get("embeddings") is None:
        raise InputError(f"Chroma: the result has no embeddings; {ADVICE}")
    if query_vectors is not None and len(query_vectors) != asked:
        raise InputError(f"query_vectors has {len(query_vectors)} rows: expected {asked}, the queries of the result")
    columns = {name: result[name] for name in OF_HITS if result.get(name) is not None}
    turned: dict[str, Any] = {**result, **{name: [] for name in columns}, "scores": []}
    for query in range(asked):
        order, scores = rerank_returned(
            "Chroma",
            result["ids"][query],
            result["embeddings"][query],
            columns["distances"][query] if "distances" in columns else None,
            own,
            None if query_vectors is None else query_vectors[query],
            params,
            advice=ADVICE,
        )
        for name, column in columns.items():
            turned[name].append([column[query][position] for position in order.tolist()])
        turned["scores"].append(scores.tolist())
    return turned
