"""Qdrant: the result of `client.query_points(..., with_vectors=True)` for a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import COSINE, DISTANCE, INNER, metric_of
from rnnreranker.base.errors import InputError
from rnnreranker.rnn.params import RnnParams

if TYPE_CHECKING:
    from qdrant_client.models import ScoredPoint

METRICS = {"Cosine": COSINE, "Dot": INNER, "Euclid": DISTANCE}
ADVICE = "call query_points with with_vectors=True"


def rerank_qdrant(
    query_vector: Any,
    points: Any,
    *,
    metric: Any = "Cosine",
    using: str | None = None,
    fused: bool = False,
    params: RnnParams | Mapping[str, Any] | None = None,
) -> list[ScoredPoint]:
    """The points in their new order, best first, with s* as their `score`; other fields stay.

    Args:
        query_vector: (d,); None = unknown.
        points: of one query, with vectors: the result of `query_points`, or its points; the groups of
            `query_points_groups`, whose hits become one list; records of `scroll` or `retrieve`, which have no scores.
        metric: of the collection: Cosine, Dot or Euclid, Qdrant's `Distance`, or the result of `get_collection`.
        using: the name of the vector, if points have several.
        fused: the scores are those of a fusion (`FusionQuery`), higher is better.

    Raises:
        InputError: another metric, points without that vector or of several queries, as `rerank_returned`.
    """
    from qdrant_client.models import ScoredPoint

    own = metric_of(METRICS, _distance(metric, using))
    hits = _points(points)
    scored = [getattr(point, "score", None) for point in hits]
    order, scores = rerank_returned(
        "Qdrant",
        [point.id for point in hits],
        [_vector(point, using) for point in hits],
        None if all(score is None for score in scored) else scored,
        own.of_fusion() if fused else own,
        query_vector,
        params,
        advice=ADVICE,
    )
    best = zip(order.tolist(), scores.tolist(), strict=True)
    return [
        hits[position].model_copy(update={"score": score})
        if isinstance(hits[position], ScoredPoint)
        else ScoredPoint(**{**dict(hits[position]), "version": 0, "score": score})
        for position, score in best
    ]


def _points(points: Any) -> list[Any]:
    if isinstance(points, tuple) and len(points) == 2 and isinstance(points[0], list):  # of scroll, with its offset
        points = points[0]
    for name in ("points", "groups"):
        points = getattr(points, name, points)
    if not isinstance(points, Sequence) or isinstance(points, str):
        raise InputError(f"Qdrant: points is a {type(points).__name__}; expected what query_points returned")
    if any(hasattr(one, "points") for one in points):
        if len(points) > 1:
            raise InputError(f"Qdrant: points has the results of {len(points)} queries; expected one: rerank each")
        points = points[0].points
    hits = [hit for one in points for hit in (one.hits if hasattr(one, "hits") else [one])]
    if other := [type(hit).__name__ for hit in hits if not hasattr(hit, "vector")]:
        raise InputError(f"Qdrant: points has a {other[0]}; expected points as query_points returns them")
    return hits


def _distance(metric: Any, using: str | None) -> Any:
    vectors = getattr(getattr(getattr(metric, "config", None), "params", None), "vectors", metric)
    if isinstance(vectors, dict):
        name = next(iter(vectors)) if using is None and len(vectors) == 1 else using
        if name not in vectors:
            raise InputError(f"Qdrant: using={using!r}: the collection has {', '.join(vectors)}; expected one of them")
        vectors = vectors[name]
    return getattr(vectors, "distance", vectors)


def _vector(point: ScoredPoint, using: str | None) -> Any:
    vector: Any = point.vector
    if not isinstance(vector, dict):
        return vector
    name = next(iter(vector)) if using is None and len(vector) == 1 else using
    if name not in vector:
        named = ", ".join(map(str, vector))
        raise InputError(f"Qdrant: using={using!r}: point {point.id!r} has the vectors {named}; expected one of them")
    return vector[name]
