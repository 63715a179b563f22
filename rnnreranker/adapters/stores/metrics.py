"""Metrics of stores: how scores become similarities, and whether scores fit the metric."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError

Kind = Literal["inner product", "cosine", "L2 distance"]
INNER: Kind = "inner product"
COSINE: Kind = "cosine"
L2: Kind = "L2 distance"

READINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # from scores to similarities, higher is better
    "s": lambda scores: scores,
    "-s": lambda scores: -scores,
    "1 - s": lambda scores: 1 - scores,
    "1 - s/2": lambda scores: 1 - scores / 2,
    "1 - s²/2": lambda scores: 1 - np.copysign(scores**2, scores) / 2,
}
Read = tuple[Kind, *tuple[str, ...]]
COSINE_DISTANCE: Read = (COSINE, "1 - s", "1 - s/2")  # quantised indexes return 2 (1 - cosine)
RAG: dict[str, Read] = {"cosine": (COSINE, "s"), "dot_product": (INNER, "s"), "l2": (L2, "s")}
METRICS: dict[str, dict[str, Read]] = {  # store → name of a metric → its readings, usual first
    "Qdrant": {"Cosine": (COSINE, "s"), "Dot": (INNER, "s"), "Euclid": (L2, "1 - s²/2")},
    "Chroma": {"l2": (L2, "1 - s/2"), "cosine": COSINE_DISTANCE, "ip": (INNER, "1 - s")},
    "Milvus": {"COSINE": (COSINE, "s"), "IP": (INNER, "s"), "L2": (L2, "1 - s/2")},
    "LanceDB": {"l2": (L2, "1 - s/2"), "cosine": COSINE_DISTANCE, "dot": (INNER, "1 - s")},
    "Faiss": {"METRIC_INNER_PRODUCT": (INNER, "s"), "METRIC_L2": (L2, "1 - s/2")},
    "DuckDB": {
        "array_cosine_similarity": (COSINE, "s"),
        "array_cosine_distance": COSINE_DISTANCE,
        "array_inner_product": (INNER, "s"),
        "array_negative_inner_product": (INNER, "-s"),
        "array_distance": (L2, "1 - s²/2"),
    },
    **dict.fromkeys(["Haystack", "LangChain", "LlamaIndex"], RAG),
}
EXACT = 5e-3  # error of scores from float16 or 8 bits, as a share of the lengths
ROUGH = 0.2  # error of scores from codes of a few bits, or of another query
COARSE = 0.5  # more is another metric; both as a share of how far the hits are from the query
REACHED = 0.05  # error of similarities that a query can have


@dataclass(frozen=True)
class StoreMetric:
    """A metric of a store.

    kind: the vectors are compared by the inner product, the cosine, or 1 - d^2 / 2 of the L2 distance d, which is the
        inner product of vectors of length 1; readings: names of `READINGS`, the usual one first.
    fused: the scores are those of a fusion, of which only the order is known.
    """

    store: str
    name: str
    kind: Kind
    readings: tuple[str, ...]
    fused: bool = False

    def similarities(self, scores: np.ndarray, query: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
        """(N,) float64: the similarities of the scores; InputError: they do not fit this metric, query and vectors.

        scores: (N,) float64, of the store; query: (d,), or None = unknown: refuses scores that no query has; rows: (N,
        d).
        """
        if self.fused:
            self._check_order(scores, query, rows)
            return scores
        errors = {
            (name, kind, one): _error(kind, READINGS[one](scores), query, rows)
            for name, (kind, *readings) in METRICS[self.store].items()
            for one in readings
            if name == self.name or query is not None or kind != INNER  # some query has nearly any inner products
        }
        own = {one: errors[self.name, self.kind, one] for one in self.readings}
        near = max(3 * min(own.values()), EXACT)
        read, error = next(one for one in own.items() if one[1] <= near)  # the usual one, if it is as good
        rivals = [(round(other, 3), name) for (name, *_), other in errors.items() if name != self.name]
        least, best = min(rivals, key=lambda one: one[0], default=(math.inf, ""))
        said = f"{self.store}: these scores are %s metric {self.name!r}%s"
        if error > (REACHED if query is None else 0.0) and (error > COARSE or least < error / 2):
            advice = "give the store's own metric, and the query and vectors that it compared"
            if least < min(error / 2, COARSE):
                advice = f"they are of {best!r}: give that"
            raise InputError(said % ("not of", f" with this query and these vectors; {advice}"))
        if error > ROUGH:
            advice = "unless the index is quantised, check that query and vectors are those that were compared"
            notice(said % ("roughly those of", f", but off by {error:.0%}; {advice}"))
        elif query is None and any(other <= near and one != read for (_, _, one), other in errors.items()):
            notice(said % ("perhaps not of", ", or doubled by a quantised index; give the query's vector"))
        return READINGS[read](scores)

    def _check_order(self, scores: np.ndarray, query: np.ndarray | None, rows: np.ndarray) -> None:
        """Raises InputError if the scores have the order of another metric, or the opposite one."""
        if query is None:
            raise InputError(f"{self.store}: fused scores say nothing of the query; give the query's vector")
        fits = {
            name: _agreement(scores, compared(kind, query[None], rows)[0])
            for name, (kind, *_) in METRICS[self.store].items()
        }
        best = max(fits, key=fits.__getitem__)
        if fits[self.name] < 0.99 and fits[best] > 0.9999:
            raise InputError(
                f"{self.store}: the scores are not in the order of {self.name!r}, but in that of {best!r}: give that"
            )
        if fits[self.name] < -0.8:
            raise InputError(
                f"{self.store}: the scores fall where the similarity to the query rises, as distances do; expected "
                "scores of which the higher is better"
            )


def metric_of(store: str, name: Any, *, fused: bool = False) -> StoreMetric:
    """The metric of a store's name, in any case, or of a member of an enumeration; InputError: an unknown one."""
    said, known = str(getattr(name, "value", name)), METRICS[store]
    for own, (kind, *readings) in known.items():
        if own.lower() == said.lower():
            return StoreMetric(store, own, kind, tuple(readings), fused)
    raise InputError(f"{store}: metric {said!r}: expected one of {', '.join(known)}")


def compared(kind: Kind, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(Q, N) float64: the similarities of queries, (Q, d), and vectors, (N, d)."""
    queries, rows = queries.astype(np.float64), rows.astype(np.float64)
    if kind == L2:
        from scipy.spatial.distance import cdist

        return 1 - np.asarray(cdist(queries, rows, "sqeuclidean")) / 2
    return unit(queries) @ unit(rows).T if kind == COSINE else queries @ rows.T


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1; those of length 0 stay."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=-1, keepdims=True)
    scaled: np.ndarray = vectors / np.where(lengths > 0, lengths, 1)
    return scaled


def _error(kind: Kind, similar: np.ndarray, query: np.ndarray | None, rows: np.ndarray) -> float:
    """The error of similarities, as a share of the hits' distance from the query; without it, from the nearest one."""
    if query is None:
        return _unreachable(kind, similar, rows)
    expected, length = compared(kind, query[None], rows)[0], float(np.linalg.norm(query))
    most = length * np.linalg.norm(rows, axis=1) if kind == INNER else np.ones(len(rows))  # in the same direction
    far = _rms(most - expected)
    least, rounded = -most, EXACT * _rms(most)
    if kind == L2:
        least, rounded = np.full(len(rows), -math.inf), EXACT * far + 1e-5 * length**2
    if ((similar > 1.05 * most) | (similar < 1.05 * least)).any():
        return math.inf  # no cosine, product or distance has this value
    return max(0.0, _rms(similar - expected) - rounded) / (far or 1e-30)


def _unreachable(kind: Kind, similar: np.ndarray, rows: np.ndarray) -> float:
    """The error of similarities against the nearest ones of any query, as a share.

    They are the products of the rows with a vector p, of length 1 at most for cosines. For distances the rows are
    centred, and the mean distance limits the length of p. Inner products have no limit.
    """
    limit, scale = (math.inf, float(np.std(similar))) if kind == INNER else (1.0, _rms(1 - similar))
    rows = unit(rows) if kind == COSINE else rows.astype(np.float64)
    if kind == L2:
        rows = rows - rows.mean(axis=0)
        squares, distances = (rows**2).sum(axis=1), 2 - 2 * similar
        limit = float(np.mean(distances - squares))
        similar = (squares - distances + limit) / 2
        if limit < 0 or (distances < 0).any():
            return math.inf
    vectors, lengths, _ = np.linalg.svd(rows, full_matrices=False)
    along, values = vectors.T @ similar, lengths**2
    ridge = 1e-9 * max(float(values.max()), 1e-30)
    while np.sum(values * (along / (values + ridge)) ** 2) > limit:
        ridge *= 1.5
    return _rms(similar - vectors @ (along * values / (values + ridge))) / (scale or 1.0)


def _agreement(one: np.ndarray, other: np.ndarray) -> float:
    """The rank correlation; 0 for few or equal values."""
    from scipy.stats import spearmanr

    if len(one) < 5 or not np.ptp(one) or not np.ptp(other):
        return 0.0
    return float(spearmanr(one, other).statistic)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
