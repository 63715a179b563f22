"""Recovery over a query set: means per similarity, their differences from the query's, and filters side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.evaluate.comparison import bootstrap_intervals, holm, paired_t_test
from rnnreranker.recover.detection import MEASURES, filtered, ranking_measures
from rnnreranker.recover.rankings import SCORERS, Visible

RATES = (0.02, 0.05, 0.1, 0.2, 0.3)


@dataclass(frozen=True)
class Recovery:
    """What was found.

    Attributes:
        queries, cases: queries used, and visible positives in all.
        hidden, negatives: judged candidates that were ranked, over all cases.
        rows: scorer, measure, value (mean over queries of the mean over their positives), difference from "query" with
            low and high (95% bootstrap interval over queries), p (paired t-test) and p_holm (over all rows).
        filters: see `detection.filtered`.
    """

    queries: int
    cases: int
    hidden: int
    negatives: int
    rows: tuple[dict[str, Any], ...]
    filters: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as for JSON."""
        return asdict(self)


def recover(cases: Iterable[Visible], rates: Sequence[float] = RATES) -> Recovery:
    """Measure every case under every scorer.

    Raises:
        InputError: no case at all.
    """
    kept = list(cases)
    if not kept:
        raise InputError(
            "no query has two positives and a judged negative among its candidates: nothing can be hidden; give "
            "judgements with several positives and negatives of a query"
        )
    of_query: dict[str, list[dict[tuple[str, str], float]]] = {}
    for case in kept:
        found = {
            (scorer, measure): value
            for scorer in SCORERS
            for measure, value in ranking_measures(case.scores[scorer], case.hidden, case.docids).items()
        }
        of_query.setdefault(case.qid, []).append(found)
    values = {
        (scorer, measure): np.array(
            [np.mean([found[scorer, measure] for found in every]) for every in of_query.values()]
        )
        for scorer in SCORERS
        for measure in MEASURES
    }
    return Recovery(
        queries=len(of_query),
        cases=len(kept),
        hidden=int(sum(case.hidden.sum() for case in kept)),
        negatives=int(sum((~case.hidden).sum() for case in kept)),
        rows=tuple(_rows(values)),
        filters=tuple(filtered(kept, rates)),
    )


def _rows(values: dict[tuple[str, str], np.ndarray]) -> list[dict[str, Any]]:
    compared = [key for key in values if key[0] != "query"]
    tests = [paired_t_test(values[key], values["query", key[1]]) for key in compared]
    corrected = dict(zip(compared, zip(tests, holm(tests), strict=True), strict=True))
    rows = []
    for (scorer, measure), found in values.items():
        row: dict[str, Any] = {"scorer": scorer, "measure": measure, "value": float(found.mean())}
        if scorer != "query":
            differences = found - values["query", measure]
            low, high = bootstrap_intervals(differences[None])[0]
            p, p_holm = corrected[scorer, measure]
            row |= {"difference": float(differences.mean()), "low": float(low), "high": float(high)}
            row |= {"p": p, "p_holm": p_holm}
        rows.append(row)
    return rows
