"""`rerank_returned`: one query's hits, as a store returns them, checked and reranked by `rerank_hits`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from rnnreranker.adapters.stores.metrics import StoreMetric, unit
from rnnreranker.base.errors import InputError
from rnnreranker.base.given import array_of
from rnnreranker.rnn.api import given_similarity
from rnnreranker.rnn.hits import RerankedHits, params_of, rerank_hits
from rnnreranker.rnn.params import RnnParams

NONE = RerankedHits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))


def rerank_returned(
    store: str,
    ids: Sequence[Hashable],
    vectors: Sequence[Any] | np.ndarray,
    values: Sequence[float | None] | np.ndarray | None,
    metric: StoreMetric,
    query_vector: Any = None,
    params: RnnParams | Mapping[str, Any] | None = None,
    *,
    advice: str = "ask the store for vectors",
    best_first: bool = False,
) -> RerankedHits:
    """The order of the hits by s*, best first: (n,) int64 positions in `ids`, and their s*, (n,) float32.

    Keeps the better one of two hits with the same id.

    Args:
        store: its name in errors; advice: how to get hits with vectors.
        ids: (N,) of the hits, in any order.
        vectors: (N, d), or N sequences of d numbers of any real type.
        values: (N,) the store's scores; None = computed similarities.
        metric: of the vectors, and of the values.
        query_vector: (d,); None = unknown.
        params: as `rerank_hits`.
        best_first: without values, the hits are in the store's order, which is checked against the metric.

    Raises:
        InputError: missing or infinite vectors or values, other lengths or types, neither query vector nor values,
            values that do not fit metric, query and vectors.
    """
    if not len(ids):
        return NONE
    rows = matrix_of(store, ids, vectors, advice)
    query = None if query_vector is None else _query(store, query_vector, rows.shape[1])
    if values is None and query is None:
        raise InputError(f"{store}: neither scores of the hits nor a query vector; give query_vector")
    if metric.fused and query is None:
        raise InputError(f"{store}: fused scores say nothing of the query; give query_vector")
    if values is None:
        assert query is not None
        if best_first:
            metric.of_fusion().similarities(store, ids, -np.arange(len(ids), dtype=np.float64), query, rows)
        scores = metric.compared(query[None], rows)[0]
    else:
        scores = metric.similarities(store, ids, _finite(store, ids, values), query, rows)
    kept = _once(ids, scores)
    rows, scores, settings = rows[kept], scores[kept], params_of(params)
    if metric.kind == "l2":
        order, similarities = _by_distance(query, rows, scores, metric, settings)
    else:
        if metric.kind == "cosine":
            rows, query = unit(rows), None if query is None else unit(query)
        order, similarities = rerank_hits(query, rows, scores, settings)
    return RerankedHits(kept[order], similarities)


def matrix_of(store: str, ids: Sequence[Hashable], vectors: Sequence[Any] | np.ndarray, advice: str) -> np.ndarray:
    """(N, d) float32: the vectors of the hits; InputError: as `rerank_returned`, with the first such hit."""
    if len(vectors) != len(ids):
        raise InputError(f"{store}: {len(vectors)} vectors of {len(ids)} hits; {advice}")
    lost = [name for name, vector in zip(ids, vectors, strict=True) if vector is None or _empty(vector)]
    if lost:
        raise InputError(f"{store}: {len(lost)} of {len(ids)} hits have no vector (first: {lost[0]!r}); {advice}")
    made: list[np.ndarray] = []
    for name, vector in zip(ids, vectors, strict=True):
        try:
            one = array_of(vector, f"{store}: the vector of hit {name!r}")
        except InputError as error:
            hint = ": make an array of bytes first, numpy.frombuffer(vector, dtype)"
            raise InputError(f"{error}{hint if isinstance(vector, bytes) else ''}") from None
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
    query = array_of(query_vector, f"{store}: query_vector").astype(np.float32)
    if query.shape != (dimension,) or not np.isfinite(query).all():
        raise InputError(
            f"{store}: query_vector has shape {query.shape}; expected ({dimension},) finite numbers, as the hits"
        )
    return query


def _finite(store: str, ids: Sequence[Hashable], values: Sequence[float | None] | np.ndarray) -> np.ndarray:
    if len(values) != len(ids):
        raise InputError(f"{store}: {len(values)} scores of {len(ids)} hits; expected one for each")
    try:
        given = np.array([np.nan if value is None else float(value) for value in values])  # of decimals too
    except (TypeError, ValueError):
        given = array_of(values, f"{store}: scores").astype(np.float64)
    if given.ndim != 1:
        raise InputError(f"{store}: scores have shape {given.shape}; expected ({len(ids)},), one for each hit")
    if (bad := np.flatnonzero(~np.isfinite(given))).size:
        value = values[bad[0]]
        raise InputError(
            f"{store}: {len(bad)} of {len(ids)} hits have no finite score (first: {ids[bad[0]]!r} with {value}); "
            "expected one for each"
        )
    return given


def _once(ids: Sequence[Hashable], scores: np.ndarray) -> np.ndarray:
    """(n,) int64, rising: of every id the first position with the best score."""
    best: dict[Hashable, int] = {}
    for position in np.argsort(-scores, kind="stable").tolist():
        best.setdefault(ids[position], position)
    return np.array(sorted(best.values()), dtype=np.int64)


def _by_distance(
    query: np.ndarray | None, rows: np.ndarray, scores: np.ndarray, metric: StoreMetric, params: RnnParams
) -> tuple[np.ndarray, np.ndarray]:
    """As `rerank_hits`, with vectors compared by 1 - d^2 / 2; scores: (N,) of the first stage."""
    first = np.argsort(-scores, kind="stable")
    similarities = np.ones((len(rows) + 1, len(rows) + 1))
    similarities[1:, 1:] = metric.compared(rows[first], rows[first])
    of_query = scores[first] if query is None else metric.compared(query[None], rows[first])[0]
    similarities[0, 1:] = similarities[1:, 0] = of_query
    similarity = given_similarity(similarities, params, base=scores[first])
    best = np.argsort(-similarity, kind="stable")
    return first[best], similarity[best]
