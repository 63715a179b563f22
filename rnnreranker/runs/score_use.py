"""Whether the scores of a run tell more than its order does."""

from __future__ import annotations

import numpy as np

from rnnreranker.base.command import notice

ENOUGH = 3  # entries of a query whose scores can show a rule
ALONE = 5  # entries where one query must show it
NEAR = 1e-5  # of the range of the scores: what a rule may be missed by, as scores are written with few digits


def why_useless(scores: np.ndarray, offsets: np.ndarray) -> str | None:
    """Why the scores of a run say nothing beyond its order, in words; None where they do.

    So it is where all scores of a query are equal, of every query; where scores rise with the rank, as in a file that
    mixes several orders; and where they follow from the rank: the same for all queries, or of a lone query a straight
    line or 1 / (c + rank). Queries with fewer than 3 entries show no such rule.

    scores: (L,) float64, query after query by rank; offsets: (Q+1,) int64; query i owns offsets[i]:offsets[i+1].

    >>> why_useless(np.array([3.0, 2.0, 1.0, 3.0, 2.0, 1.0]), np.array([0, 3, 6]))
    'its scores follow from the rank, they are the same for all queries'
    """
    counts = np.diff(offsets)
    queries = np.repeat(np.arange(len(counts)), counts)
    steps = np.diff(scores)[np.diff(queries) == 0]
    if not len(steps):
        return None
    if (steps > 0).any():
        return "its scores rise with the rank"
    if not steps.any():
        return "the scores of a query are equal"
    telling = np.flatnonzero(counts >= ENOUGH)
    if not len(telling):
        return None
    longest = telling[np.argmax(counts[telling])]
    model = scores[offsets[longest] : offsets[longest + 1]]
    if len(telling) == 1:
        follows = len(model) >= ALONE and (_straight(model) or (bool((model > 0).all()) and _straight(1 / model)))
        return "its scores follow from the rank" if follows else None
    inside = np.isin(queries, telling)
    ranks = (np.arange(len(scores)) - np.repeat(offsets[:-1], counts))[inside]
    same = np.abs(scores[inside] - model[ranks]).max() <= _slack(model)
    return "its scores follow from the rank, they are the same for all queries" if same else None


def scores_of_use(scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """(L,) float64: the scores; zeros, with a notice, where they say nothing beyond the order.

    scores, offsets: as in `why_useless`.
    """
    if (why := why_useless(scores, offsets)) is None:
        return scores
    notice(f"the run tells only its order ({why}): ranks are used, scores are not")
    return np.zeros(len(scores))


def _straight(values: np.ndarray) -> bool:
    """Whether values stand on a straight line over their ranks."""
    line = np.linspace(values[0], values[-1], len(values))
    return bool(np.abs(values - line).max() <= _slack(values))


def _slack(values: np.ndarray) -> float:
    return NEAR * float(abs(values[0] - values[-1]))
