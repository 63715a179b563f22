"""Whether the scores of a run tell more than its order does."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rnnreranker.runs.run import Run

ENOUGH = 3  # entries of a query whose scores can show a rule
ALONE = 5  # entries where one query must show it
NEAR = 1e-5  # of the range of the scores: what a rule may be missed by, as scores are written with few digits


def why_useless(run: Run) -> str | None:
    """Why the scores say nothing beyond the order, in words; None where they do.

    So it is where all scores of every query are equal, or where they follow from the rank: the same for all queries, or
    of a lone query 1 / (c + rank) or a straight line. Queries with fewer than 3 entries show nothing either way.

    >>> from rnnreranker.runs import Run
    >>> why_useless(Run.from_dict({"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"d": 3.0, "e": 2.0, "f": 1.0}}))
    'its scores are the same for all queries, they follow from the rank'
    """
    counts = np.diff(run.offsets)
    if (counts > 1).any() and not (np.diff(run.scores) * (np.diff(run.queries) == 0)).any():
        return "all its scores of a query are equal"
    telling = np.flatnonzero(counts >= ENOUGH)
    if not len(telling):
        return None
    longest = telling[np.argmax(counts[telling])]
    model = run.scores[run.offsets[longest] : run.offsets[longest + 1]]
    if len(telling) == 1:
        follows = len(model) >= ALONE and (_straight(model) or (bool((model > 0).all()) and _straight(1 / model)))
        return "its scores follow from the rank" if follows else None
    inside = np.isin(run.queries, telling)
    apart = np.abs(run.scores[inside] - model[run.ranks[inside] - 1]).max()
    return "its scores are the same for all queries, they follow from the rank" if apart <= _slack(model) else None


def scores_of_use(run: Run) -> np.ndarray:
    """(L,) float64: the scores of a run for those who ask more of them than the order; zeros where they tell no more.

    That they do not is said in one line.
    """
    if (why := why_useless(run)) is None:
        return run.scores
    logging.getLogger(__name__).warning("the run tells only its order (%s): ranks are used, scores are not", why)
    return np.zeros(len(run.scores))


def _straight(values: np.ndarray) -> bool:
    """Whether values stand on a straight line over their places."""
    line = np.linspace(values[0], values[-1], len(values))
    return bool(np.abs(values - line).max() <= _slack(values))


def _slack(values: np.ndarray) -> float:
    return NEAR * float(abs(values[0] - values[-1]))
