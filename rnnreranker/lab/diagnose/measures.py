"""Measures of one context (element 0 is the query), of two rankings, and of a distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

LOW_VARIANCE = 1e-12  # below it, all elements are in the same number of lists
PERSISTENCE = 0.9  # p: about 86% of the weight is on the first ten ranks
BINS = 12  # of a histogram


def rank_biased_overlap(first: Sequence[str], second: Sequence[str], p: float = PERSISTENCE) -> float:
    """RBO_ext of two rankings of the same length, in [0, 1]: 1 = identical, 0 = disjoint.

    With X_d the number of entries that the first d of both share, and n the length,

        RBO_ext = (X_n / n) p^n + (1 - p) / p * sum_{d=1..n} (X_d / d) p^d

    (Webber, Moffat and Zobel 2010, equation 32, for equal lengths).

    Args:
        first, second: n >= 1 distinct names each, best first.
        p: in (0, 1).

    >>> rank_biased_overlap("ab", "ab"), rank_biased_overlap("ab", "cd")
    (1.0, 0.0)
    >>> round(rank_biased_overlap("ab", "ba", p=0.5), 12)  # X = 0, 2: 1 * .25 + 1 * (0 + .25)
    0.5
    """
    n = len(first)
    rank_of = {entry: rank for rank, entry in enumerate(second)}
    common = np.zeros(n, dtype=np.int64)
    for rank, entry in enumerate(first):
        if entry in rank_of:
            common[max(rank, rank_of[entry])] += 1  # from that depth on both have it
    depths = np.arange(1, n + 1)
    agreement = np.cumsum(common) / depths
    value = agreement[-1] * p**n + (1 - p) / p * float((agreement * p**depths).sum())
    return float(min(max(value, 0.0), 1.0))


def spread(values: np.ndarray, ones: bool = False) -> dict[str, Any]:
    """Mean, quartiles and a histogram; with `ones` the share of values up to 1."""
    low, *quartiles, high = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    counts, edges = np.array([len(values)]), np.array([low, high])
    if high - low > 1e-6 * max(abs(low), abs(high)):  # narrower ones cannot be distinguished
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
    """A number rounded to four digits."""
    return round(float(value), 4)


def skewness(values: np.ndarray) -> float:
    """The third standardised moment, mean((x - mean)^3) / sd^3; 0 for equal values.

    >>> round(skewness(np.array([0, 0, 0, 4])), 6)  # mean 1, sd sqrt(3), third moment 6
    1.154701
    """
    away = np.asarray(values, dtype=np.float64) - np.mean(values)
    variance = float((away**2).mean())
    return 0.0 if variance < LOW_VARIANCE else float((away**3).mean()) / variance**1.5


def cohesion(links: np.ndarray) -> float | None:
    """How much more often than by chance two neighbours of an element are neighbours, in [-1, 1].

    Transitivity (closed paths of length two / all) minus density (links / pairs): about 0 by chance, near 1 - density
    for groups. None if no element has two neighbours. links: (n, n) bool, symmetric; the diagonal is ignored.
    """
    adjacent = links.astype(np.float64)
    np.fill_diagonal(adjacent, 0.0)
    degrees = adjacent.sum(axis=1)
    paths = float((degrees * (degrees - 1)).sum())
    if paths == 0:
        return None
    closed = float(((adjacent @ adjacent) * adjacent).sum())
    n = len(links)
    return closed / paths - float(degrees.sum()) / (n * (n - 1))


def listed(lists: np.ndarray, m: int) -> np.ndarray:
    """(m, m) bool: whether row i of the lists (m, length) contains element j."""
    inside = np.zeros((m, m), dtype=bool)
    inside[np.arange(m)[:, None], lists] = True
    return inside
