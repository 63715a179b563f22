"""From which agreement of run and vectors on reranking may be called likely to help: learnt from runs on record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RIGHT = 0.9  # of the runs called likely to help that must have gained


@dataclass(frozen=True)
class Case:
    """A run on record, diagnosed and measured.

    Attributes:
        collection: its documents; runs of one collection tell less of another than runs of several.
        agreement: of the run's order with that of the vectors, 0 to 1.
        gained: whether the 95% interval of the difference that reranking makes lies above 0.
    """

    collection: str
    agreement: float
    gained: bool


@dataclass(frozen=True)
class HeldOutCollection:
    """A collection judged by the limit that the others give.

    Attributes:
        collection: the one left out.
        limit: of the others; None = they give none, and nothing is called likely to help.
        likely, right: its runs at or below the limit, and those of them that gained.
        others, gained: its runs above it, and those of them that gained.
    """

    collection: str
    limit: float | None
    likely: int
    right: int
    others: int
    gained: int


def limit(cases: Sequence[Case]) -> float | None:
    """The largest agreement of a case at or below which at least nine cases in ten gained; None = there is none.

    >>> limit([Case("a", 0.3, True), Case("b", 0.4, True), Case("a", 0.6, False)])
    0.4
    """
    for bound in sorted({case.agreement for case in cases}, reverse=True):
        below = [case.gained for case in cases if case.agreement <= bound]
        if sum(below) >= RIGHT * len(below):
            return bound
    return None


def leave_one_out(cases: Sequence[Case]) -> list[HeldOutCollection]:
    """Every collection, in the order of the names, judged by the limit that the cases of all others give."""
    judged = []
    for collection in sorted({case.collection for case in cases}):
        bound = limit([case for case in cases if case.collection != collection])
        mine = [case for case in cases if case.collection == collection]
        likely = [case.gained for case in mine if bound is not None and case.agreement <= bound]
        others = [case.gained for case in mine if bound is None or case.agreement > bound]
        judged.append(HeldOutCollection(collection, bound, len(likely), sum(likely), len(others), sum(others)))
    return judged
