"""Measures of one context (element 0 is the query), of two rankings, of a distribution, and of a graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.rnn import RnnParams, reference
from rnnreranker.runs.head import order_by_score

if TYPE_CHECKING:
    from rnnreranker.parts.neighbours import NeighbourGraph

PERSISTENCE = 0.9  # p: about 86% of the weight is on the first ten ranks
KNOWN = ("rank", "run", "query")  # the terms of a score that are known without neighbours
NEAR = ("jaccard", "first")  # those of the Jaccard similarity
TOP = 10  # of the order that a term's effect is counted in
CAP = 3  # times k: what a cap on in-degree is measured at
BLOCK = 2**22  # edges looked at together


def rounded(value: Any) -> Any:
    """Plain values of JSON: numbers of NumPy too, floats with four digits, None for NaN."""
    text = json.dumps(value, default=lambda one: one.item())
    return json.loads(text, parse_float=lambda digits: round(float(digits), 4), parse_constant=lambda _: None)


def spread(values: np.ndarray, ones: bool = False) -> dict[str, Any]:
    """Mean and quartiles; with `ones` the share of values up to 1."""
    measured = {"mean": np.mean(values)}
    measured |= dict(zip(("q1", "median", "q3"), np.quantile(values, [0.25, 0.5, 0.75]), strict=True))
    return measured | ({"share_at_most_one": (values <= 1).mean()} if ones else {})


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
    shared = [max(rank, rank_of[entry]) for rank, entry in enumerate(first) if entry in rank_of]
    depths = np.arange(1, n + 1)
    agreement = np.cumsum(np.bincount(shared, minlength=n)) / depths
    value = agreement[-1] * p**n + (1 - p) / p * float((agreement * p**depths).sum())
    return float(np.clip(value, 0.0, 1.0))


def skewness(values: np.ndarray) -> float:
    """The third standardised moment, mean((x - mean)^3) / sd^3; 0 for equal values.

    >>> round(skewness(np.array([0, 0, 0, 4])), 6)  # mean 1, sd sqrt(3), third moment 6
    1.154701
    """
    from scipy.stats import skew

    return float(skew(values)) if np.ptp(values) else 0.0


def cohesion(links: np.ndarray) -> float:
    """How much more often than by chance two neighbours of an element are neighbours, in [-1, 1].

    Transitivity (closed paths of length two / all) minus density (links / pairs): about 0 by chance, near 1 - density
    for groups. NaN if no element has two neighbours. links: (n, n) bool, symmetric; the diagonal is ignored.
    """
    adjacent = links.astype(np.float64)
    np.fill_diagonal(adjacent, 0.0)
    degrees, n = adjacent.sum(axis=1), len(links)
    paths = float((degrees * (degrees - 1)).sum())
    if paths == 0:
        return float("nan")
    return float(((adjacent @ adjacent) * adjacent).sum()) / paths - float(degrees.sum()) / (n * (n - 1))


def listed(lists: np.ndarray) -> np.ndarray:
    """(m, m) bool: whether row i of the lists (m, length) contains another element j."""
    inside = np.zeros((len(lists), len(lists)), dtype=bool)
    np.put_along_axis(inside, lists, True, axis=1)
    np.fill_diagonal(inside, False)
    return inside


def terms(made: reference.Parts, params: RnnParams) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """What each term adds to the scores of n candidates, (n,) float64 by name, and its weight; both by name.

    Amounts sum to the score, weights to 1. Only terms with a weight: `rank`, `run`, `query` (inner product), `jaccard`
    (J with the query), `first` (J with the run's first), `nearest` (mean score of the nearest candidates).
    """
    share, probes = params.smoothing if params.smoothed_over else 0.0, len(made.jaccard)
    known = KNOWN[-len(made.terms) :]  # eq. 1 has the inner product alone
    weights = {name: params.lam * float(weight) for name, weight in zip(known, made.weights, strict=True)}
    weights |= {"jaccard": (1 - params.lam) / probes, "first": (1 - params.lam) * (probes - 1) / probes}
    weights = {name: (1 - share) * weight for name, weight in weights.items()} | {"nearest": share}
    values = dict(zip(known, made.terms, strict=True)) | {"jaccard": made.jaccard[0], "nearest": made.lent}
    values["first"] = made.jaccard[1:].sum(axis=0) / max(probes - 1, 1)
    return {name: weight * values[name] for name, weight in weights.items() if weight}, weights


def effects(added: dict[str, np.ndarray], weights: dict[str, float], docids: np.ndarray) -> dict[str, dict[str, float]]:
    """The weight of each term and its influence on the order of a context; NaN where undefined.

    spread: its standard deviation as a share of the sum over terms. top_10: how many of the first ten need it.
    agreement: rank-biased overlap of its own order and the order of the scores.

    added, weights: of `terms`; docids: (n,) names, which break ties.
    """

    def ranked(scores: np.ndarray) -> list[str]:
        return docids[order_by_score(scores, docids)].tolist()

    scores = np.sum([*added.values()], axis=0)
    order, whole = ranked(scores), sum(amounts.std() for amounts in added.values())
    return {
        name: {
            "weight": weights[name],
            "spread": amounts.std() / whole if whole else 0.0,
            "top_10": len({*order[:TOP]} - {*ranked(scores - amounts)[:TOP]}) if len(order) > TOP else np.nan,
            "agreement": rank_biased_overlap(ranked(amounts), order) if amounts.std() else np.nan,
        }
        for name, amounts in added.items()
    }


def coverage(lists: np.ndarray, rows: np.ndarray, graph: NeighbourGraph) -> dict[str, float]:
    """How much of a context of n candidates the graph contains; NaN where no pair qualifies.

    `pairs`: share of candidate pairs of which one names the other in the collection; `nearest`: the same of pairs
    listed among the candidates.

    lists: (n + 1, length) int64, nearest first, element 0 = query. rows: (n,) int64 in the graph; -1 = missing.
    """
    near = graph.neighbours(np.maximum(rows, 0))
    named = (near[:, :, None] == rows).any(axis=1) & (rows >= 0)[:, None]  # (n, n): i names j
    known, every = named | named.T, ~np.eye(len(rows), dtype=bool)
    wanted = {"pairs": every, "nearest": listed(lists)[1:, 1:]}
    return {name: float(known[own].mean()) if own.any() else np.nan for name, own in wanted.items()}


def above_cap(graph: NeighbourGraph, k: int) -> dict[str, Any]:
    """A limit on how often a document is among the first k neighbours of others, and the share of edges above it.

    Raises:
        InputError: an unusable row of the graph.
    """
    k, degrees = min(k, graph.k), np.zeros(len(graph), dtype=np.int64)
    for rows in np.array_split(np.arange(len(graph)), len(graph) * graph.k // BLOCK + 1):
        near = graph.neighbours(rows)[:, :k]
        degrees += np.bincount(near[near != rows[:, None]], minlength=len(graph))
    above = np.maximum(degrees - CAP * k, 0).sum() / max(int(degrees.sum()), 1)
    return {"at": CAP * k, "edges": above}
