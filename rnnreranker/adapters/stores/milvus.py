"""Milvus and Milvus Lite: what `client.search(..., output_fields=["vector"])` returned for a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import COSINE, INNER, SQUARED_DISTANCE, metric_of
from rnnreranker.base.errors import InputError
from rnnreranker.rnn.params import RnnParams

METRICS = {"COSINE": COSINE, "IP": INNER, "L2": SQUARED_DISTANCE}


def rerank_milvus(
    query_vector: Any,
    hits: Sequence[Any],
    *,
    vector: str = "vector",
    metric: Any = "COSINE",
    fused: bool = False,
    params: RnnParams | None = None,
) -> list[dict[str, Any]]:
    """The hits of one query in their new order, best first, each with s* as "score"; the rest stays Milvus's.

    Args:
        query_vector: (d,); None = it is known by the hits' distances alone.
        hits: of one query, as `client.search(...)[0]`.
        vector: the field with the vectors.
        metric: of the field's index: COSINE, IP or L2.
        fused: distances are scores of a fusion (`hybrid_search`), higher is better.
        params: as `rerank_hits`.

    Raises:
        InputError: another metric, hits without that field, as `rerank_returned`.
    """
    own = metric_of(METRICS, metric)
    if fused and query_vector is None:
        raise InputError("fused=True and query_vector=None: fused scores say nothing of the query; give query_vector")
    order, scores = rerank_returned(
        "Milvus",
        [hit.id for hit in hits],
        [hit["entity"].get(vector) for hit in hits],
        [hit.distance for hit in hits],
        own.of_fusion() if fused else own,
        query_vector,
        params,
        advice=f'search with output_fields=["{vector}"]',
    )
    return [{**hits[position], "score": score} for position, score in zip(order.tolist(), scores.tolist(), strict=True)]
