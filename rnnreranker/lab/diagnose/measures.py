"""Measurements of one context (element 0 is the query), or of two rankings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.rnn import RnnParams, reference

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
        p: in (0, 1); a larger p weighs deeper ranks more.

    >>> rank_biased_overlap("ab", "ab"), rank_biased_overlap("ab", "cd")
    (1.0, 0.0)
    >>> round(rank_biased_overlap("ab", "ba", p=0.5), 12)  # X = 0, 2: 1 * .25 + 1 * (0 + .25)
    0.5
    """
    if not 0 < p < 1:
        raise InputError(f"p={p!r}: expected a number between 0 and 1, neither included")
    if len(first) != len(second) or not len(first):
        raise InputError(f"rankings of {len(first)} and {len(second)} entries: expected two of the same length >= 1")
    for name, entries in (("first", first), ("second", second)):
        if len(set(entries)) != len(entries):
            raise InputError(f"the {name} ranking has an entry twice: expected distinct names")
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


@dataclass(frozen=True, eq=False)
class Geometry:
    """Sets, hubs and similarities of one context of m elements.

    sizes: (m,) int64, elements of R*(i) without i, row 0 = query. occurrences: (m,) int64, in how many other lists
    each element is. skewness: of the occurrences. cohesion: see `cohesion`. low, high, level: lowest, highest and mean
    similarity of two elements. largest: the highest weight argument, diagonal included. negative: share of set members
    with a weight argument below 0. similarity: (m-1,) float64 inner products with the query. lists: (m, length) int64,
    elements by similarity.
    """

    sizes: np.ndarray
    occurrences: np.ndarray
    skewness: float
    cohesion: float | None
    low: float
    high: float
    level: float
    largest: float
    negative: float
    similarity: np.ndarray
    lists: np.ndarray


def geometry(vectors: np.ndarray, params: RnnParams) -> Geometry:
    """Measure one context. vectors: (m, d) float32, m >= 2, row 0 = query."""
    m = len(vectors)
    raw = reference.inner_products(vectors)
    others = raw[~np.eye(m, dtype=bool)].astype(np.float64)
    if params.scale == "none":
        ranking = weighed = reference.normalize_rows(raw.astype(np.float64), params.normalize)
    else:
        ranking = reference.inner_products(vectors, shift_free=True)
        spread = np.ptp(others)
        mapped = np.clip((raw - others.min()) / spread, 0.0, 1.0) if spread else np.zeros((m, m))
        weighed = reference.normalize_rows(mapped, params.normalize)
    lists = np.argsort(-ranking.astype(np.float32), axis=1, kind="stable")[:, : reference.list_length(m, params)]
    own = _reciprocal(lists, m)
    members = _extended(own, lists, params)
    np.fill_diagonal(members, False)
    named = listed(lists, m)
    np.fill_diagonal(named, False)
    occurrences = named.sum(axis=0)
    count = int(members.sum())
    return Geometry(
        sizes=members.sum(axis=1),
        occurrences=occurrences,
        skewness=skewness(occurrences),
        cohesion=cohesion(own[1:, 1:]),
        low=float(others.min()),
        high=float(others.max()),
        level=float(others.mean()),
        largest=float(weighed.max()),
        negative=float((weighed[members] < 0).sum()) / count if count else 0.0,
        similarity=raw[0, 1:].astype(np.float64),
        lists=lists,
    )


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


def _reciprocal(lists: np.ndarray, m: int) -> np.ndarray:
    named = listed(lists, m)
    return named & named.T


def _extended(own: np.ndarray, lists: np.ndarray, params: RnnParams) -> np.ndarray:
    """R* as a mask (m, m); the rule of `reference.extend`."""
    if params.tau == 0:
        return own.copy()
    m = len(own)
    short = _reciprocal(lists[:, : reference.extension_columns(m, params)], m).astype(np.float32)
    shared, sizes = own.astype(np.float32) @ short.T, short.sum(axis=1)  # small integers, exact
    enough = 3 * shared > 2 * sizes if params.variant == "authors" else 3 * shared >= 2 * sizes
    return own | ((enough & own).astype(np.float32) @ short > 0)
