"""Qdrant: what `client.query_points(..., with_vectors=True)` returned for a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import COSINE, DISTANCE, INNER, metric_of
from rnnreranker.base.errors import InputError
from rnnreranker.rnn.params import RnnParams

if TYPE_CHECKING:
    from qdrant_client.models import QueryResponse, ScoredPoint

METRICS = {"Cosine": COSINE, "Dot": INNER, "Euclid": DISTANCE}
ADVICE = "call query_points with with_vectors=True"


def rerank_qdrant(
    query_vector: Any,
    points: QueryResponse | Sequence[ScoredPoint],
    *,
    metric: Any = "Cosine",
    using: str | None = None,
    fused: bool = False,
    params: RnnParams | None = None,
) -> list[ScoredPoint]:
    """The points in their new order, best first, with s* as their `score`; all else stays.

    Args:
        query_vector: (d,); None = it is known by the points' scores alone.
        points: of one query, with their vectors.
        metric: of the collection: Cosine, Dot or Euclid, or Qdrant's `Distance`.
        using: the name of the vector, where points have several.
        fused: the scores are those of a fusion (`FusionQuery`), higher is better.
        params: as `rerank_hits`.

    Raises:
        InputError: another metric, points without that vector, as `rerank_returned`.
    """
    own = metric_of(METRICS, metric)
    if fused and query_vector is None:
        raise InputError("fused=True and query_vector=None: fused scores say nothing of the query; give query_vector")
    hits: list[ScoredPoint] = list(points.points if hasattr(points, "points") else points)
    order, scores = rerank_returned(
        "Qdrant",
        [point.id for point in hits],
        [_vector(point, using) for point in hits],
        [point.score for point in hits],
        own.of_fusion() if fused else own,
        query_vector,
        params,
        advice=ADVICE,
    )
    return [
        hits[position].model_copy(update={"score": score})
        for position, score in zip(order.tolist(), scores.tolist(), strict=True)
    ]


def _vector(point: ScoredPoint, using: str | None) -> Any:
    vector: Any = point.vector
    if not isinstance(vector, dict):
        return vector
    name = next(iter(vector)) if using is None and len(vector) == 1 else using
    if name not in vector:
        named = ", ".join(map(str, vector))
        raise InputError(f"Qdrant: using={using!r}: point {point.id!r} has the vectors {named}; expected one of them")
    return vector[name]
