"""Values as a diagnosis has them: rounded, and many of them as mean, quartiles and a histogram."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

BINS = 12  # of a histogram


def spread(values: np.ndarray, ones: bool = False) -> dict[str, Any]:
    """Mean, quartiles and a histogram; with `ones` the share of the values that are at most 1."""
    low, *quartiles, high = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    counts, edges = np.array([len(values)]), np.array([low, high])
    if high - low > 1e-6 * max(abs(low), abs(high)):  # narrower ones cannot be told apart
        bins: int | np.ndarray = BINS
        if np.issubdtype(values.dtype, np.integer):  # whole numbers: as many of them in every bin
            step = math.ceil((high - low + 1) / BINS)
            bins = np.arange(low, high + step + 1, step) - 0.5
        counts, edges = np.histogram(values, bins=bins)
    result: dict[str, Any] = {"mean": rounded(values.mean()), "lowest": rounded(low)}
    result |= {name: rounded(value) for name, value in zip(("q1", "median", "q3"), quartiles, strict=True)}
    result |= {"highest": rounded(high)}
    if ones:
        result["share_at_most_one"] = rounded((values <= 1).mean())
    return result | {"counts": counts.tolist(), "edges": [rounded(edge) for edge in edges]}


def rounded(value: Any) -> float:
    """A number with four digits behind the point."""
    return round(float(value), 4)
