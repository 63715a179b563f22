"""The last steps of `reference`: what the first stage and the query say, mixed with J, and smoothed; as loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnnreranker.rnn.params import RnnParams
from rnnreranker.rnn.reference import Steps, jaccard, neighbour_lists, steps, total

Scores = Sequence[float] | np.ndarray | None


def rnn_similarity(query: np.ndarray, candidates: np.ndarray, params: RnnParams, base: Scores = None) -> np.ndarray:
    """s* of every candidate of one query, (N,) float64.

    query: (d,), candidates: (N, d), in the order of the first stage; base: its N scores (None: see `RnnParams`).
    """
    return parts(steps(np.vstack([query[None], candidates]), params), params, base).scores


@dataclass(frozen=True, eq=False)
class Parts:
    """What the scores of one context, (N,) float64, are made of.

    mixed: s* = lam * weights @ terms + (1 - lam) * mean of jaccard. scores: s** = (1 - a) s* + a * lent, a being
    `params.smoothing`, where scores are smoothed, else s*.

    probes: P elements, the query (0) first; jaccard: (P, N), their similarity to the candidates. terms: (3, N), of
    rank, run score and inner product, each in [0, 1]; weights: (3,), of sum 1. scale "none": the inner product alone.
    nearest: of each candidate the elements whose scores it takes a share of, nearest first; none where scores are not
    smoothed. lent: (N,), the means of their s*, a candidate's own where there is none.
    """

    probes: list[int]
    terms: np.ndarray
    weights: np.ndarray
    jaccard: np.ndarray
    mixed: np.ndarray
    nearest: list[list[int]]
    lent: np.ndarray
    scores: np.ndarray


def parts(done: Steps, params: RnnParams, base: Scores = None) -> Parts:
    """The parts of s* of the candidates of one context; base as in `rnn_similarity`."""
    count = len(done.raw) - 1
    if params.scale == "none":  # eq. 1
        probes, weights, terms = [0], [1.0], [geometric(done, params)]
    else:
        scores = [float(value) for value in (done.raw[0, 1:] if base is None else base)]
        order = sorted(range(count), key=lambda i: -scores[i]) if base is None else list(range(count))
        probes = [0, *(i + 1 for i in order)][: params.probes]
        ranks = {i: rank for rank, i in enumerate(order, 1)}
        falling = unit([1 / (params.rank_constant + ranks[i]) for i in range(count)])
        terms = [falling, unit(scores), geometric(done, params)]
        weights = [params.rank_weight, params.run_weight, params.query_weight]
    shares = np.array(weights) / total(weights)
    known = sum((share * term for share, term in zip(shares, terms, strict=True)), start=np.zeros(count))
    near = np.stack([jaccard(done.expanded, probe)[1:] for probe in probes])
    for row, probe in enumerate(probes[1:], 1):
        near[row, probe - 1] = 1.0  # itself, also where it has no neighbours
    mixed = mix(known, near.mean(axis=0), params.lam)
    nearest = nearest_candidates(done, params.smoothed_over)
    lent = np.array(
        [total(mixed[j - 1] for j in sorted(own)) / len(own) if own else mixed[i] for i, own in enumerate(nearest)]
    )
    smoothed = (1.0 - params.smoothing) * mixed + params.smoothing * lent if params.smoothed_over else mixed
    return Parts(probes, np.stack(terms), shares, near, mixed, nearest, lent, smoothed)


def nearest_candidates(done: Steps, count: int) -> list[list[int]]:
    """Of each candidate the `count` others that are most similar to it, nearest first, of equal ones the earlier.

    Elements, from 1: the query is none of them. Fewer where there are fewer whose similarity is known.
    """
    rows = neighbour_lists(done.ranking, len(done.ranking))
    known = [
        [j for j in row if j not in (0, i) and (done.known is None or done.known[i, j])] for i, row in enumerate(rows)
    ]
    return [row[:count] for row in known[1:]]


def unit(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """The values mapped so that the lowest is 0 and the highest 1, (n,) float64; 0 where all are equal."""
    low, high = float(min(values)), float(max(values))
    return np.array([(float(value) - low) / (high - low) if high > low else 0.0 for value in values])


def geometric(done: Steps, params: RnnParams) -> np.ndarray:
    """The geometric term per candidate, (m-1,) float64: as weighted (none), or min-max over the candidates (minmax)."""
    if params.scale == "none":
        return done.sims[0, 1:]
    return unit(done.raw[0, 1:])


def mix(geometric_term: np.ndarray, jaccard_term: np.ndarray, lam: float) -> np.ndarray:
    """s* = lambda * what is known without neighbours + (1 - lambda) * Jaccard."""
    return lam * geometric_term + (1.0 - lam) * jaccard_term
