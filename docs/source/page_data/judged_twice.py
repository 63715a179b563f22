"""How far the judges of the built-in collection agree, from what each of them gave."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rnnreranker.base.files import read_lines
from rnnreranker.data.names import PYDOC_FILES
from rnnreranker.data.qrels import load_qrels

DECIDED = "qrels-decided.tsv"  # qid, docid, first, second and third grade of the pairs on which two rounds differ


class Agreement(NamedTuple):
    """How far two judges agree: pairs that both judged, shares of equal grades and of grades at most one apart.

    kappa: Cohen's, with linear weights: 1 - observed / expected mean difference of the grades.
    """

    pairs: int
    equal: float
    within_one: float
    kappa: float


def judged_twice(name: str) -> Agreement:
    """How far a second judge agrees with the first: on all of `pydoc`, on the part judged twice of `pydoc/shallow`."""
    judged = load_qrels(name)
    first = {(qid, docid): int(grade) for qid, docid, grade in judged.itertuples(index=False)}
    if name == "pydoc":
        second = dict(first)
        for qid, docid, *grades in decided():
            first[qid, docid], second[qid, docid] = int(grades[0]), int(grades[1])
    else:
        lines = [line.split() for _, line in read_lines(PYDOC_FILES / "qrels-shallow-second.txt") if line]
        second = {(qid, docid): int(grade) for qid, _, docid, grade in lines}
    both = np.array([(grade, second[pair]) for pair, grade in first.items() if pair in second])
    apart = np.abs(both[:, 0] - both[:, 1])
    by_chance = np.abs(np.subtract.outer(both[:, 0], both[:, 1])).mean()
    return Agreement(
        len(both), float((apart == 0).mean()), float((apart <= 1).mean()), float(1 - apart.mean() / by_chance)
    )


def decided() -> list[list[str]]:
    """The pairs on which the two rounds differ, with the grade of a third judge, which counts."""
    return [line.split("\t") for _, line in read_lines(PYDOC_FILES / DECIDED) if line]
