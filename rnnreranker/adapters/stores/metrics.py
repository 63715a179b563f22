"""Metrics of stores: how scores become similarities, and whether scores fit the metric."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError

Kind = Literal["inner", "cosine", "l2"]
Reading = Callable[[np.ndarray], np.ndarray]
CALLED = {"inner": "inner product", "cosine": "cosine", "l2": "L2 distance"}
EXACT = 5e-3  # error of scores from float16 or 8 bits, as a share of the lengths
ROUGH = 0.2  # error of scores from codes of a few bits, or of another query
COARSE = 0.5  # more is another metric; both as a share of how far the hits are from the query
OPPOSED = -0.5  # correlation of the ranks of scores that fall where similarities rise
REACHED = 0.05  # error of similarities that a query can have


@dataclasses.dataclass(frozen=True)
class StoreMetric:
    """A metric of vectors, and its scores in a store.

    kind: "inner" product; "cosine"; "l2": 1 - d^2 / 2 of the distance d, the inner product of vectors of length 1.
    readings: functions from scores, (N,), to similarities, higher is better; the usual one first.
    fused: the scores are those of a fusion, of which only the order is known.
    argument, name, known: the argument of the metric, its name, and all metrics of the store. Without a name, as of an
        index of Faiss, scores are not checked.
    """

    kind: Kind
    readings: tuple[Reading, ...]
    fused: bool = False
    argument: str = "metric"
    name: str = ""
    known: Mapping[str, StoreMetric] = dataclasses.field(default_factory=dict)

    def of_fusion(self) -> StoreMetric:
        return dataclasses.replace(self, readings=(same,), fused=True)

    def compared(self, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(Q, N) float64: the similarities of queries, (Q, d), and vectors, (N, d)."""
        query, rows = query.astype(np.float64), rows.astype(np.float64)
        if self.kind == "l2":
            from scipy.spatial.distance import cdist

            return 1 - np.asarray(cdist(query, rows, "sqeuclidean")) / 2
        return unit(query) @ unit(rows).T if self.kind == "cosine" else query @ rows.T

    def similarities(
        self, store: str, ids: Sequence[Hashable], scores: np.ndarray, query: np.ndarray | None, rows: np.ndarray
    ) -> np.ndarray:
        """(N,) float64: the similarities of the scores; InputError: they do not fit this metric, query and vectors.

        scores: (N,) float64, of the store; query: (d,), or None = unknown: refuses scores that no query has; rows: (N,
        d).
        """
        if self.fused:
            self._check_order(store, scores, query, rows)
            return scores
        if not self.name:  # the index says it itself
            return self.readings[0](scores)
        errors = self._errors(scores, query, rows)
        least = min(error for error, _ in errors)
        error, read = next(one for one in errors if one[0] <= max(3 * least, EXACT))  # the usual one, if it is as good
        similar, enough = read(scores), REACHED if query is None else 0.0
        if query is not None and error <= enough:
            return similar
        telling = query is not None or len(rows) > rows.shape[1]  # else some query has any inner products
        others = [
            (better, name, other.kind, reading)
            for name, other in self.known.items()
            for better, reading in other._errors(scores, query, rows)
            if (other.kind, reading) != (self.kind, read) and (telling or other.kind != "inner")
        ]
        least, best, *_ = min(others, key=lambda one: round(one[0], 3), default=(math.inf, ""))
        opposed = query is not None and self._agreement(similar, query, rows) < OPPOSED
        if error > enough and (opposed or error > COARSE or least < error / 2):
            advice = f"give the store's own {self.argument}, and the query and vectors that it compared"
            if least < min(error / 2, COARSE):
                advice = f"they are of {self.argument}={best!r}: give that"
            raise InputError(f"{store}: {self._not_these(ids, similar, scores, query, rows)}; {advice}")
        if error > ROUGH:
            notice(
                f"{store}: the scores are roughly those of {self._named}, but off by {error:.0%}; unless the index is "
                "quantised, check that query and vectors are those that were compared"
            )
        elif query is None and any(
            other <= max(3 * error, EXACT) and kind != "inner" and reading is not read
            for other, _, kind, reading in others
        ):
            notice(
                f"{store}: without the query's vector these scores may be of {self._named}, of another metric, or the "
                "2 (1 - cosine) of a quantised index; give the query's vector"
            )
        return similar

    def _errors(self, scores: np.ndarray, query: np.ndarray | None, rows: np.ndarray) -> list[tuple[float, Reading]]:
        """The error of the similarities of each reading, as a share of the hits' distance from the query."""
        if query is None:
            return [(_unreachable(read(scores), rows, self.kind), read) for read in self.readings]
        expected = self.compared(query[None], rows)[0]
        lengths, length = np.linalg.norm(rows, axis=1), float(np.linalg.norm(query))
        most = length * lengths if self.kind == "inner" else np.ones(len(rows))  # of vectors in the same direction
        far = _rms(most - expected)
        rounded = EXACT * (far if self.kind == "l2" else _rms(most)) + 1e-5 * (self.kind == "l2") * length**2

        def error(similar: np.ndarray) -> float:
            if (similar > 1.05 * most).any() or (self.kind != "l2" and (similar < -1.05 * most).any()):
                return math.inf  # there is no such cosine, product or distance
            return max(0.0, _rms(similar - expected) - rounded) / (far or 1e-30)

        return [(error(read(scores)), read) for read in self.readings]

    def _agreement(self, similar: np.ndarray, query: np.ndarray, rows: np.ndarray) -> float:
        """The rank correlation of similarities with those of this metric; 0 for few or equal hits."""
        from scipy.stats import rankdata

        ranks = np.stack([rankdata(similar), rankdata(self.compared(query[None], rows)[0])])
        if len(rows) < 5 or (ranks == ranks[:, :1]).all(axis=1).any():
            return 0.0
        return float(np.corrcoef(ranks)[0, 1])

    def _check_order(self, store: str, scores: np.ndarray, query: np.ndarray | None, rows: np.ndarray) -> None:
        """Raises InputError if the scores have the order of another metric, or the opposite one."""
        if query is None:
            return
        own = self._agreement(scores, query, rows)
        for name, other in self.known.items():
            if own < 0.99 and other._agreement(scores, query, rows) > 0.9999:
                raise InputError(
                    f"{store}: the scores are not in the order of {self._named}, but in that of "
                    f"{self.argument}={name!r}: give that"
                )
        if own < -0.8:
            raise InputError(
                f"{store}: the scores fall where the similarity to the query rises, as distances do; expected scores "
                "of which the higher is better"
            )

    @property
    def _named(self) -> str:
        return f"{self.argument}={self.name!r}"

    def _not_these(
        self,
        ids: Sequence[Hashable],
        similar: np.ndarray,
        scores: np.ndarray,
        query: np.ndarray | None,
        rows: np.ndarray,
    ) -> str:
        if query is None:
            return f"the scores are not of {self._named}: no query has these with the vectors of the hits"
        expected = self.compared(query[None], rows)[0]
        worst = int(np.argmax(np.abs(similar - expected)))
        means, value = similar[worst], expected[worst]
        if self.kind == "l2":
            means, value = np.sqrt(np.maximum(0, 2 - 2 * np.array([means, value])))
        return (
            f"the scores are not of {self._named}: hit {ids[worst]!r} has {scores[worst]:.4g}, which means "
            f"{CALLED[self.kind]} {means:.4g}, but its vector and the query have {value:.4g}"
        )


def same(values: np.ndarray) -> np.ndarray:
    return values


def one_minus(values: np.ndarray) -> np.ndarray:
    return 1 - values


def one_minus_half(values: np.ndarray) -> np.ndarray:
    """Of squared distances, and of the 2 (1 - cosine) of quantised indexes."""
    return 1 - values / 2


def of_distance(values: np.ndarray) -> np.ndarray:
    return 1 - np.copysign(values**2, values) / 2


INNER = StoreMetric("inner", (same,))
INNER_NEGATED = StoreMetric("inner", (np.negative,))
INNER_DISTANCE = StoreMetric("inner", (one_minus,))
COSINE = StoreMetric("cosine", (same,))
COSINE_DISTANCE = StoreMetric("cosine", (one_minus, one_minus_half))
SQUARED_DISTANCE = StoreMetric("l2", (one_minus_half,))
DISTANCE = StoreMetric("l2", (of_distance,))


def metric_of(metrics: Mapping[str, StoreMetric], name: Any, argument: str = "metric") -> StoreMetric:
    """The metric of a store's name, in any case, or of a member of an enumeration; InputError: not one of `metrics`."""
    said = str(getattr(name, "value", name))
    by_name = {known.lower(): known for known in metrics}
    if said.lower() not in by_name:
        raise InputError(f"{argument}={said!r}: expected one of {', '.join(metrics)}")
    own = by_name[said.lower()]
    return dataclasses.replace(metrics[own], argument=argument, name=own, known=metrics)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1; those of length 0 stay."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=-1, keepdims=True)
    scaled: np.ndarray = vectors / np.where(lengths > 0, lengths, 1)
    return scaled


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _unreachable(similar: np.ndarray, rows: np.ndarray, kind: Kind) -> float:
    """The error of similarities against the nearest ones of any query, as a share.

    They are the products of the rows with a vector p, of length 1 at most for cosines. For distances the rows are
    centred, and the mean distance limits the length of p. Inner products have no limit.
    """
    limit, far, rows = 1.0, _rms(1 - similar), unit(rows) if kind == "cosine" else rows.astype(np.float64)
    if kind == "l2":
        rows = rows - rows.mean(axis=0)
        squares, distances = (rows**2).sum(axis=1), 2 - 2 * similar
        limit = float(np.mean(distances - squares))
        similar = (squares - distances + limit) / 2
        if limit < 0 or (distances < 0).any():
            return math.inf
    values, vectors = np.linalg.eigh(rows @ rows.T)
    values, along = np.clip(values, 0, None), vectors.T @ similar
    ridge = 1e-9 * max(float(values.max()), 1e-30)
    while kind != "inner" and np.sum(values * (along / (values + ridge)) ** 2) > limit and ridge < 1e12:
        ridge *= 1.5
    error = _rms(vectors @ (along * ridge / (values + ridge)))
    return error / ((far if kind != "inner" else float(np.std(similar))) or 1.0)
