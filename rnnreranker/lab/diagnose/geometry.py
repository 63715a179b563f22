"""What can be measured on one context, the query (element 0) and its candidates, from vectors alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnreranker.rnn import RnnParams, reference

LOW_VARIANCE = 1e-12  # below it, all elements stand in the same number of lists


@dataclass(frozen=True, eq=False)
class Geometry:
    """Sets, hubs and similarities of one context of m elements.

    sizes: (m,) int64, elements of R*(i) without i itself, row 0 = query. occurrences: (m,) int64, in how many lists of
    other elements each stands. skewness: of the occurrences. cohesion: see `cohesion`; None where it is not defined.
    low, high, level: lowest, highest and mean similarity of two elements. largest: the highest weight argument, the
    diagonal included. negative: share of set members (others than the element) whose weight argument is below 0.
    similarity: (m-1,) float64 inner products with the query. lists: (m, length) int64, elements in order of similarity.
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
    """The measurements of one context. vectors: (m, d) float32, m >= 2, row 0 = query."""
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
    """The third standardised moment, mean((x - mean)^3) / sd^3; 0 where all values are equal.

    >>> round(skewness(np.array([0, 0, 0, 4])), 6)  # mean 1, sd sqrt(3), third moment 6
    1.154701
    """
    away = np.asarray(values, dtype=np.float64) - np.mean(values)
    variance = float((away**2).mean())
    return 0.0 if variance < LOW_VARIANCE else float((away**3).mean()) / variance**1.5


def cohesion(links: np.ndarray) -> float | None:
    """How much more often than chance two neighbours of an element are neighbours too, in [-1, 1].

    Transitivity (closed paths of length two / all of them) less the density (links / pairs). About 0 where neighbours
    are a matter of chance, near 1 - density where elements form groups. None where no element has two neighbours.

    links: (n, n) bool, symmetric; the diagonal is ignored.
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
    """(m, m) bool: whether the list of element i, row i of (m, length), has element j."""
    inside = np.zeros((m, m), dtype=bool)
    inside[np.arange(m)[:, None], lists] = True
    return inside


def _reciprocal(lists: np.ndarray, m: int) -> np.ndarray:
    named = listed(lists, m)
    return named & named.T


def _extended(own: np.ndarray, lists: np.ndarray, params: RnnParams) -> np.ndarray:
    """R* as a mask (m, m); the rule is that of `reference.extend`."""
    if params.tau == 0:
        return own.copy()
    m = len(own)
    short = _reciprocal(lists[:, : reference.extension_columns(m, params)], m).astype(np.float32)
    shared, sizes = own.astype(np.float32) @ short.T, short.sum(axis=1)  # small integers, exact
    enough = 3 * shared > 2 * sizes if params.variant == "authors" else 3 * shared >= 2 * sizes
    return own | ((enough & own).astype(np.float32) @ short > 0)
