"""How far a run reproduces a published one: order, topic scores and effects (Breuer et al., SIGIR 2020).

repro-eval has these figures, but its Kendall's tau of the union numbers documents by the alphabet of their docids: the
same two rankings give .333 or -.333 as documents are called, and lists without a common document 1. Here documents that
a list lacks stand below all that it has, tied. The other formulas are its.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnnreranker.evaluate.scores import Scores
from rnnreranker.runs import Run

DEPTH = 100  # documents of a list that are compared
PERSISTENCE = 0.95  # of rank-biased overlap: the weight of a rank over that of the rank before


@dataclass(frozen=True)
class Graded:
    """One grade of a reproduction.

    Attributes:
        figure: what is compared: "Kendall's tau", "rank-biased overlap", "RMSE", "effect ratio", "delta RI".
        measure: that it is of; "order" for the first two.
        ours, theirs: what is compared; None for orders.
        value: the grade; None where it is not defined.
        perfect: its value for the published run itself.
    """

    figure: str
    measure: str
    ours: float | None
    theirs: float | None
    value: float | None
    perfect: float


def compare_orders(ours: Run, theirs: Run, topics: Sequence[str], depth: int = DEPTH) -> list[Graded]:
    """Kendall's tau of the union and rank-biased overlap of two runs, means over topics.

    Args:
        ours, theirs: runs; a topic that one of them lacks has an empty list there.
        topics: query ids.
        depth: of the lists.
    """
    lists = [(_first(ours, topic, depth), _first(theirs, topic, depth)) for topic in topics]
    by_measure = {
        "Kendall's tau": [tau_of_union(*pair) for pair in lists],
        "rank-biased overlap": [rank_biased_overlap(*pair, depth=depth) for pair in lists],
    }
    return [Graded(name, "order", None, None, float(np.mean(values)), 1.0) for name, values in by_measure.items()]


def tau_of_union(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """Kendall's tau-b over all documents of two lists, best first; those a list lacks are tied below its last.

    1 for equal lists and for two empty ones, 0 where one alone is empty.
    """
    union = list(dict.fromkeys([*ours, *theirs]))
    if list(ours) == list(theirs):
        return 1.0
    if not ours or not theirs:
        return 0.0
    from scipy.stats import kendalltau

    ranks = [{docid: rank for rank, docid in enumerate(ranked)} for ranked in (ours, theirs)]
    return float(kendalltau(*([own.get(docid, len(own)) for docid in union] for own in ranks)).statistic)


def rank_biased_overlap(
    ours: Sequence[str], theirs: Sequence[str], p: float = PERSISTENCE, depth: int = DEPTH
) -> float:
    """Webber et al.'s overlap, cut at a depth and divided by its largest value: sum p^(i-1) |common of i| / i."""
    if list(ours) == list(theirs):
        return 1.0
    seen: tuple[set[str], set[str]] = (set(), set())
    score = total = 0.0
    common = 0
    for index in range(min(depth, max(len(ours), len(theirs)))):
        for own, other, ranked in ((*seen, ours), (*seen[::-1], theirs)):
            if index < len(ranked):
                own.add(ranked[index])
                common += ranked[index] in other
        weight = p**index
        score, total = score + weight * common / (index + 1), total + weight
    return score / total


def compare_scores(scores: Scores, with_baselines: bool) -> list[Graded]:
    """What two runs score on the same topics, and how much over their baselines.

    RMSE is the root of the mean squared difference of topic scores. The effect ratio is our mean improvement over our
    baseline by theirs over theirs; delta RI is their relative improvement minus ours.

    Args:
        scores: of our run and theirs; with baselines, of ours and theirs too, in that order.
        with_baselines: whether they are there.
    """
    graded = []
    for number, measure in enumerate(scores.measures):
        ours, theirs, *bases = scores.values[:, :, number]
        error = float(np.sqrt(np.mean((ours - theirs) ** 2)))
        graded.append(Graded("RMSE", measure, float(ours.mean()), float(theirs.mean()), error, 0.0))
        if with_baselines:
            ours_base, theirs_base = bases
            effect, published = float((ours - ours_base).mean()), float((theirs - theirs_base).mean())
            graded.append(Graded("effect ratio", measure, effect, published, _divided(effect, published), 1.0))
            relative, printed = _divided(effect, ours_base.mean()), _divided(published, theirs_base.mean())
            delta = None if relative is None or printed is None else printed - relative
            graded.append(Graded("delta RI", measure, relative, printed, delta, 0.0))
    return graded


def _first(run: Run, topic: str, depth: int) -> list[str]:
    return run.ranked(topic)[:depth] if topic in run else []


def _divided(effect: float, base: float) -> float | None:
    return None if base == 0 else float(effect / base)
