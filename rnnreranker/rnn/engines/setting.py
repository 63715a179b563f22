"""The parameters as the engines take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rnnreranker.rnn import reference
from rnnreranker.rnn.params import RnnParams


@dataclass(frozen=True)
class EngineSetting:
    """RnnParams as the engines take them: numbers, and list lengths that depend on the size of a context.

    By the size m of a context: lists, entries of a neighbour list; columns, entries used for the extension (-1 = no
    extension); nearest, entries whose weights are averaged (1 = those of the element itself).
    """

    lists: Mapping[int, int]
    columns: Mapping[int, int]
    nearest: Mapping[int, int]
    authors: bool  # overlap above 2/3, not at it; exp(p s) - 1; rows of weights divided by their sums
    weight: int  # 0 linear, 1 exp, 2 binary
    weight_scale: float
    normalize: int  # 0 none, 1 max, 2 mean
    minmax: bool
    exponent_limit: float
    largest_square: float  # of a vector's length: so no inner product of two can overflow

    @classmethod
    def of(cls, params: RnnParams, sizes: np.ndarray) -> EngineSetting:
        """The setting for contexts of these sizes."""
        distinct = [m for m in np.unique(sizes).tolist() if m > 1]
        return cls(
            lists={m: reference.list_length(m, params) for m in distinct},
            columns={m: reference.extension_columns(m, params) if params.tau > 0 else -1 for m in distinct},
            nearest={m: reference.nearest_taken(m, params) for m in distinct},
            authors=params.variant == "authors",
            weight=("linear", "exp", "binary").index(params.weight),
            weight_scale=params.weight_scale,
            normalize=(None, "max", "mean").index(params.normalize),
            minmax=params.scale == "minmax",
            exponent_limit=reference.EXPONENT_LIMIT,
            largest_square=1e38,
        )

    def lengths(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(C,) int64 each, of contexts of these sizes: lists, columns, nearest."""
        of = sizes.tolist()
        lists, columns = [self.lists.get(m, 0) for m in of], [self.columns.get(m, -1) for m in of]
        nearest = [self.nearest.get(m, 0) for m in of]
        return np.array(lists, dtype=np.int64), np.array(columns, dtype=np.int64), np.array(nearest, dtype=np.int64)
