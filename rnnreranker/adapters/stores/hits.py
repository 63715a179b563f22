"""`rerank_returned`: one query's hits, as a store has them, looked through and handed to `rerank_hits`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from rnnreranker.adapters.stores.metrics import StoreMetric
from rnnreranker.base.errors import InputError
from rnnreranker.rnn.hits import rerank_hits
from rnnreranker.rnn.known_similarities import given_similarity
from rnnreranker.rnn.params import RnnParams

SLACK = 0.05  # of a similarity beyond its bounds: stores compute it from quantised vectors
NONE = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)


def rerank_returned(
    store: str,
    ids: Sequence[Hashable],
    vectors: Sequence[Any] | np.ndarray,
    values: Sequence[float | None] | np.ndarray | None,
    metric: StoreMetric,
    query_vector: Any = None,
    params: RnnParams | None = None,
    *,
    advice: str = "ask the store for vectors",
) -> tuple[np.ndarray, np.ndarray]:
    """The order of the hits by s*, best first: (n,) int64 positions in `ids`, and their s*, (n,) float32.

    No hits give none. Of an id that comes twice the better hit stays, so that n may be smaller than N.

    Args:
        store: what errors call it.
        ids: (N,) of the hits, in any order.
        vectors: (N, d), or N sequences of d numbers of any real type.
        values: (N,) what the store says of query and hit; None = nothing, similarities are computed.
        metric: what vectors are compared by and how values are read.
        query_vector: (d,); None = the values are all that is known of it.
        params: as `rerank_hits`.
        advice: how hits come with vectors.

    Raises:
        InputError: hits without a vector or value, vectors of other lengths or types, NaN or infinity, neither query
            vector nor values.
    """
    if not len(ids):
        return NONE
    rows = matrix_of(store, ids, vectors, advice)
    query = None if query_vector is None else _query(store, query_vector, rows.shape[1])
    if values is None and query is None:
        raise InputError(f"{store}: neither scores of the hits nor a query vector; give query_vector")
    if metric.kind == "cosine":
        rows, query = _unit(rows), None if query is None else _unit(query)
    scores = _own(rows, query, metric) if values is None else _similarities(store, ids, values, metric)
    kept = _once(ids, scores)
    rows, scores = rows[kept], scores[kept]
    if metric.kind == "l2":
        order, similarities = _by_distance(query, rows, scores, params or RnnParams())
    else:
        order, similarities = rerank_hits(query, rows, scores, params)
    return kept[order], similarities


def matrix_of(store: str, ids: Sequence[Hashable], vectors: Sequence[Any] | np.ndarray, advice: str) -> np.ndarray:
    """(N, d) float32: the vectors of the hits.

    Raises:
        InputError: as `rerank_returned`; the message names the first hit of that kind.
    """
    if len(vectors) != len(ids):
        raise InputError(f"{store}: {len(vectors)} vectors of {len(ids)} hits; {advice}")
    lost = [name for name, vector in zip(ids, vectors, strict=True) if vector is None or _empty(vector)]
    if lost:
        raise InputError(f"{store}: {len(lost)} of {len(ids)} hits have no vector (first: {lost[0]!r}); {advice}")
    made: list[np.ndarray] = []
    for name, vector in zip(ids, vectors, strict=True):
        try:
            one = np.asarray(vector)
        except ValueError:  # sequences of different lengths in one another
            raise InputError(f"{store}: the vector of hit {name!r} is no row of numbers; expected one") from None
        if one.dtype.kind not in "fiu":
            raise InputError(
                f"{store}: the vector of hit {name!r} is {type(vector).__name__} of {one.dtype}; expected numbers: "
                "of bytes make an array first, numpy.frombuffer(vector, dtype)"
            )
        if one.ndim != 1 or (made and one.shape != made[0].shape):
            expected = f"{made[0].shape} as the first hit's" if made else "(d,), a vector a hit"
            raise InputError(f"{store}: the vector of hit {name!r} has shape {one.shape}; expected {expected}")
        made.append(one.astype(np.float32))
    rows = np.stack(made)
    if (bad := np.flatnonzero(~np.isfinite(rows).all(axis=1))).size:
        raise InputError(
            f"{store}: the vectors of {len(bad)} hits have NaN or infinite values (first: {ids[bad[0]]!r}); "
            "expected finite ones: write them to the store again"
        )
    return rows


def _empty(vector: Any) -> bool:
    return hasattr(vector, "__len__") and not len(vector)


def _query(store: str, query_vector: Any, dimension: int) -> np.ndarray:
    try:
        query = np.asarray(query_vector, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError(f"{store}: query_vector is {type(query_vector).__name__}; expected a row of numbers") from None
    if query.shape != (dimension,) or not np.isfinite(query).all():
        raise InputError(
            f"{store}: query_vector has shape {query.shape}; expected ({dimension},) finite numbers, as the hits"
        )
    return query


def _similarities(
    store: str, ids: Sequence[Hashable], values: Sequence[float | None] | np.ndarray, metric: StoreMetric
) -> np.ndarray:
    """(N,) float64, higher is better."""
    if len(values) != len(ids):
        raise InputError(f"{store}: {len(values)} scores of {len(ids)} hits; expected one for each")
    given = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    if (bad := np.flatnonzero(~np.isfinite(given))).size:
        value = values[bad[0]]
        raise InputError(
            f"{store}: {len(bad)} of {len(ids)} hits have no finite score (first: {ids[bad[0]]!r} with {value}); "
            "expected one for each"
        )
    similarities = metric.similarity(given)
    lowest, highest = metric.bounds
    if (bad := np.flatnonzero((similarities < lowest - SLACK) | (similarities > highest + SLACK))).size:
        raise InputError(
            f"{store}: hit {ids[bad[0]]!r} has the score {values[bad[0]]}, which the metric that was said cannot give; "
            "say the one that the store compares by"
        )
    return similarities


def _own(rows: np.ndarray, query: np.ndarray | None, metric: StoreMetric) -> np.ndarray:
    """(N,) float64: the similarities of query and hits where the store gave none."""
    assert query is not None
    if metric.kind == "l2":
        return _of_distances(query[None], rows)[0]
    return rows.astype(np.float64) @ query


def _once(ids: Sequence[Hashable], scores: np.ndarray) -> np.ndarray:
    """(n,) int64, rising: of every id the position with the best score, of equal ones the first."""
    best: dict[Hashable, int] = {}
    for position in np.argsort(-scores, kind="stable").tolist():
        best.setdefault(ids[position], position)
    return np.array(sorted(best.values()), dtype=np.int64)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1; those of length 0 stay, their cosines are 0."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=-1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _of_distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(a, b) float64: 1 - d^2 / 2 of the distances of two lists of vectors."""
    from scipy.spatial.distance import cdist

    return 1 - cdist(one.astype(np.float64), other.astype(np.float64), "sqeuclidean") / 2


def _by_distance(
    query: np.ndarray | None, rows: np.ndarray, scores: np.ndarray, params: RnnParams
) -> tuple[np.ndarray, np.ndarray]:
    """As `rerank_hits`, with vectors compared by 1 - d^2 / 2; scores: (N,) of the first stage."""
    first = np.argsort(-scores, kind="stable")
    similarities = np.ones((len(rows) + 1, len(rows) + 1))
    similarities[1:, 1:] = _of_distances(rows[first], rows[first])
    asked = scores[first] if query is None else _of_distances(query[None], rows[first])[0]
    similarities[0, 1:] = similarities[1:, 0] = asked
    similarity = given_similarity(similarities, params, base=scores[first])
    best = np.argsort(-similarity, kind="stable")
    return first[best], similarity[best]
