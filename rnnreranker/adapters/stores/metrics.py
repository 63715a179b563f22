"""How stores say that two vectors are near: each metric, and the similarity that its numbers stand for."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from rnnreranker.base.errors import InputError


@dataclasses.dataclass(frozen=True)
class StoreMetric:
    """What vectors are compared by, and what a store's numbers say of it.

    kind: "inner" product; "cosine": the inner product of vectors brought to length 1; "l2": 1 - d^2 / 2 of the distance
        d, which is the inner product where vectors have length 1.
    similarity: of the numbers of the store, (N,), that similarity: higher is better.
    bounds: lowest and highest similarity that there can be, but for rounding and quantised vectors.
    """

    kind: Literal["inner", "cosine", "l2"]
    similarity: Callable[[np.ndarray], np.ndarray]
    bounds: tuple[float, float] = (-math.inf, math.inf)

    def of_fusion(self) -> StoreMetric:
        """This metric where the store's numbers are scores of a fusion, higher is better."""
        return StoreMetric(self.kind, same)


def same(values: np.ndarray) -> np.ndarray:
    return values


def one_minus(values: np.ndarray) -> np.ndarray:
    return 1 - values


INNER = StoreMetric("inner", same)
INNER_NEGATED = StoreMetric("inner", np.negative)
INNER_DISTANCE = StoreMetric("inner", one_minus)
COSINE = StoreMetric("cosine", same, (-1, 1))
COSINE_DISTANCE = StoreMetric("cosine", one_minus, (-1, 1))
SQUARED_DISTANCE = StoreMetric("l2", lambda squares: 1 - squares / 2, (-math.inf, 1))
DISTANCE = StoreMetric("l2", lambda distances: 1 - np.copysign(distances**2, distances) / 2, (-math.inf, 1))


def metric_of(metrics: Mapping[str, StoreMetric], name: object, argument: str = "metric") -> StoreMetric:
    """The metric of a store's own name, in capitals or not; an enumeration's member counts as its value.

    Raises:
        InputError: not one of `metrics`.
    """
    said = str(getattr(name, "value", name))
    by_name = {known.lower(): metric for known, metric in metrics.items()}
    if said.lower() not in by_name:
        raise InputError(f"{argument}={said!r}: expected one of {', '.join(metrics)}")
    return by_name[said.lower()]
