"""Metrics of stores: how scores become similarities, and whether scores fit the metric."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError
from rnnreranker.rnn.checks import fall

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
METRICS: dict[str, dict[str, Read]] = {  # store → metric → kind, and names of READINGS, the usual first
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


class StoreMetric(NamedTuple):
    """A metric of a store, a row of `METRICS`.

    fused: the scores are those of a fusion, of which only the order is known.
    """

    store: str
    name: str
    fused: bool = False

    @property
    def kind(self) -> Kind:
        """How vectors are compared: by the inner product, the cosine, or 1 - d^2 / 2 of the L2 distance d, which is the
        inner product of vectors of length 1.
        """
        return METRICS[self.store][self.name][0]

    def similarities(self, scores: np.ndarray, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(N,) float64: the similarities of the scores; InputError: they do not fit this metric, query and vectors.

        scores: (N,) float64, of the store; query: (d,); rows: (N, d).
        """
        known = METRICS[self.store]
        if self.fused:
            fits = {name: _agreement(scores, compared(known[name][0], query, rows)) for name in known}
            best = max(fits, key=fits.__getitem__)
            if fits[self.name] < -0.8 or (fits[self.name] < 0.99 and fall([(scores, query, rows)])):
                best = "a distance"
            elif fits[self.name] >= 0.99 or fits[best] <= 0.9999:
                return scores
            raise InputError(
                f"{self.store}: the scores are not in the order of {self.name!r}, but in that of {best!r}; give its "
                "name, and scores of which the higher is better"
            )
        errors = {
            (name, one): _error(kind, READINGS[one](scores), query, rows)
            for name, (kind, *readings) in known.items()
            for one in readings
        }
        error, read = min((error, one) for (name, one), error in errors.items() if name == self.name)
        (best, _), least = min(errors.items(), key=lambda one: one[1])
        said = f"{self.store}: these scores are %s metric {self.name!r}%s"
        if error > COARSE or round(least, 3) < error / 2:
            advice = "give the store's own metric, and the query and vectors that it compared"
            if least < min(error / 2, COARSE):
                advice = f"they are of {best!r}: give that"
            raise InputError(said % ("not of", f" with this query and these vectors; {advice}"))
        if error > ROUGH:
            advice = "unless the index is quantised, check that query and vectors are those that were compared"
            notice(said % ("roughly those of", f", but off by {error:.0%}; {advice}"))
        return READINGS[read](scores)


def metric_of(store: str, name: Any, *, fused: bool = False) -> StoreMetric:
    """The metric of a store's name, in any case, or of a member of an enumeration; InputError: an unknown one."""
    said, known = str(getattr(name, "value", name)), METRICS[store]
    for own in known:
        if own.lower() == said.lower():
            return StoreMetric(store, own, fused)
    raise InputError(f"{store}: metric {said!r}: expected one of {', '.join(known)}")


def compared(kind: Kind, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(N,) or (Q, N) float64: the similarities of a query, (d,), or of several, (Q, d), and vectors, (N, d)."""
    query, rows = query.astype(np.float64), rows.astype(np.float64)
    if kind == L2:
        from scipy.spatial.distance import cdist

        distances: np.ndarray = cdist(np.atleast_2d(query), rows, "sqeuclidean")
        return 1 - distances.reshape(*query.shape[:-1], -1) / 2
    return unit(query) @ unit(rows).T if kind == COSINE else query @ rows.T


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1; those of length 0 stay."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=-1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def _error(kind: Kind, similar: np.ndarray, query: np.ndarray, rows: np.ndarray) -> float:
    """The error of similarities, as a share of the hits' distance from the query; rounding counts as none."""
    expected, length = compared(kind, query, rows), float(np.linalg.norm(query))
    most = length * np.linalg.norm(rows, axis=1) if kind == INNER else np.ones(len(rows))  # in the same direction
    far = _rms(most - expected)
    if ((similar if kind == L2 else np.abs(similar)) > 1.05 * most).any():
        return math.inf  # no cosine, product or distance has this value
    rounded = EXACT * far + 1e-5 * length**2 if kind == L2 else EXACT * _rms(most)
    return max(0.0, _rms(similar - expected) - rounded) / (far or 1e-30)


def _agreement(one: np.ndarray, other: np.ndarray) -> float:
    """The rank correlation; 0 for few or equal values."""
    from scipy.stats import spearmanr

    if len(one) < 5 or not np.ptp(one) or not np.ptp(other):
        return 0.0
    return float(spearmanr(one, other).statistic)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
