"""Milvus and Milvus Lite: the result of `client.search(..., output_fields=["vector"])` for a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    params: RnnParams | Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """The hits of one query in their new order, best first, each with s* as "score"; other keys stay.

    Args:
        query_vector: (d,); None = unknown.
        hits: of one query, as `client.search(...)[0]`, or the whole result of a search with one query.
        vector: the field of the vectors.
        metric: of the field's index: COSINE, IP or L2, or the result of `client.describe_index(...)`.
        fused: distances are scores of a fusion (`hybrid_search`), higher is better.

    Raises:
        InputError: another metric, several queries, hits without that field, as `rerank_returned`.
    """
    own = metric_of(
        METRICS, metric["metric_type"] if isinstance(metric, Mapping) and "metric_type" in metric else metric
    )
    if len(hits) and isinstance(hits[0], list):
        if len(hits) > 1:
            raise InputError(
                f"Milvus: the result has the hits of {len(hits)} queries; expected one: give result[i] with query i"
            )
        hits = hits[0]
    if other := [
        type(hit).__name__ for hit in hits if not hasattr(hit, "keys") or not {"distance", "entity"} <= {*hit}
    ]:
        raise InputError(
            f"Milvus: hits has a {other[0]}; expected hits with distance and entity, as client.search returns"
        )
    order, scores = rerank_returned(
        "Milvus",
        [_id(hit) for hit in hits],
        [hit["entity"].get(vector) for hit in hits],
        [hit["distance"] for hit in hits],
        own.of_fusion() if fused else own,
        query_vector,
        params,
        advice=f'search with output_fields=["{vector}"]',
    )
    return [{**hits[position], "score": score} for position, score in zip(order.tolist(), scores.tolist(), strict=True)]


def _id(hit: Any) -> Any:
    return (
        hit.id if hasattr(hit, "id") else next(value for key, value in hit.items() if key not in ("distance", "entity"))
    )
