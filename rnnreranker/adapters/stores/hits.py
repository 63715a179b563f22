"""`rerank_returned`: one query's hits, as a store returns them, checked and reranked by `rerank_hits`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from rnnreranker.adapters.stores.metrics import COSINE, L2, StoreMetric, compared, unit
from rnnreranker.base.errors import InputError, array_of
from rnnreranker.rnn.api import given_similarity
from rnnreranker.rnn.hits import RerankedHits, params_of, rerank_hits
from rnnreranker.rnn.params import RnnParams

Params = RnnParams | Mapping[str, Any] | None
NONE = RerankedHits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))


def rerank_returned(
    metric: StoreMetric,
    ids: Sequence[Hashable],
    vectors: Sequence[Any] | np.ndarray,
    values: Sequence[float | None] | np.ndarray | None,
    query_vector: Any,
    params: Params = None,
    advice: str = "ask the store for vectors",
) -> RerankedHits:
    """The order of the hits by s*, best first: (n,) int64 positions in `ids`, and their s*, (n,) float32.

    Keeps the better one of two hits with the same id.

    Args:
        metric: of the vectors, and of the values; advice: how to get hits with vectors.
        ids: (N,) of the hits, in any order.
        vectors: (N, d), or N sequences of d numbers of any real type.
        values: (N,) the store's scores; None, or all None = computed similarities.
        query_vector: (d,), against which metric and values are checked.
        params: as `rerank_hits`.

    Raises:
        InputError: missing or infinite vectors or values, other lengths or types, values that do not fit metric, query
            and vectors.
    """
    if not len(ids):
        return NONE
    store, kind, settings = metric.store, metric.kind, params_of(params)
    rows = _matrix(store, ids, vectors, advice)
    query = array_of(query_vector, f"{store}: query_vector").astype(np.float32)
    if query.shape != rows.shape[1:] or not np.isfinite(query).all():
        raise InputError(
            f"{store}: query_vector has shape {query.shape}; expected {rows.shape[1:]} finite numbers, as the hits"
        )
    if values is None or all(value is None for value in values):
        scores = compared(kind, query, rows)
    else:
        scores = metric.similarities(_finite(store, ids, values), query, rows)
    kept = _once(ids, scores)
    rows, scores = rows[kept], scores[kept]
    if kind == L2:
        order, similarities = _by_distance(query, rows, scores, settings)
    else:
        if kind == COSINE:
            rows, query = unit(rows), unit(query)
        order, similarities = rerank_hits(query, rows, scores, settings)
    return RerankedHits(kept[order], similarities)


def pairs(best: RerankedHits) -> list[tuple[int, float]]:
    """Position and s* of each hit, best first, as Python numbers."""
    return list(zip(best.order.tolist(), best.scores.tolist(), strict=True))


def column_of(store: str, table: Any, name: str, advice: str) -> np.ndarray:
    """(N,) the values of a column of an Arrow table, of lists as arrays; InputError: no such column."""
    if name not in table.column_names:
        raise InputError(f"{store}: no column {name} among {', '.join(table.column_names)}; {advice}")
    return table.column(name).to_numpy()


def _matrix(store: str, ids: Sequence[Hashable], vectors: Sequence[Any] | np.ndarray, advice: str) -> np.ndarray:
    """(N, d) float32: the vectors of the hits; InputError: as `rerank_returned`, with the first such hit."""
    if len(vectors) != len(ids):
        raise InputError(f"{store}: {len(vectors)} vectors of {len(ids)} hits; {advice}")
    lost = [name for name, vector in zip(ids, vectors, strict=True) if vector is None or not np.size(vector)]
    if lost:
        raise InputError(f"{store}: {len(lost)} of {len(ids)} hits have no vector (first: {lost[0]!r}); {advice}")
    rows = array_of(list(vectors), f"{store}: vectors").astype(np.float32)
    if rows.ndim != 2:
        raise InputError(f"{store}: vectors have shape {rows.shape}; expected (hits, dimensions)")
    if (bad := np.flatnonzero(~np.isfinite(rows).all(axis=1))).size:
        raise InputError(f"{store}: the vector of hit {ids[bad[0]]!r} has NaN or infinite values; expected finite ones")
    return rows


def _finite(store: str, ids: Sequence[Hashable], values: Sequence[float | None] | np.ndarray) -> np.ndarray:
    given = array_of([np.nan if value is None else value for value in values], f"{store}: scores").astype(np.float64)
    if given.shape != (len(ids),):
        raise InputError(f"{store}: scores have shape {given.shape}; expected ({len(ids)},), one for each hit")
    if (bad := np.flatnonzero(~np.isfinite(given))).size:
        raise InputError(
            f"{store}: {len(bad)} of {len(ids)} hits have no finite score (first: {ids[bad[0]]!r} with "
            f"{values[bad[0]]}); expected one for each"
        )
    return given


def _once(ids: Sequence[Hashable], scores: np.ndarray) -> np.ndarray:
    """(n,) int64, rising: of every id the first position with the best score."""
    best: dict[Hashable, int] = {}
    for position in np.argsort(-scores, kind="stable").tolist():
        best.setdefault(ids[position], position)
    return np.array(sorted(best.values()), dtype=np.int64)


def _by_distance(
    query: np.ndarray, rows: np.ndarray, scores: np.ndarray, params: RnnParams
) -> tuple[np.ndarray, np.ndarray]:
    """As `rerank_hits`, with vectors compared by 1 - d^2 / 2; scores: (N,) of the first stage."""
    first = np.argsort(-scores, kind="stable")
    points = np.vstack([query[None], rows[first]])
    similarity = given_similarity(compared(L2, points, points), params, base=scores[first])
    best = np.argsort(-similarity, kind="stable")
    return first[best], similarity[best]
