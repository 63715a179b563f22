"""Recovery over a query set: means per similarity, their differences from the query's, and filters side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.evaluate.comparison import bootstrap_intervals, holm, paired_t_test
from rnnreranker.recover.detection import MEASURES, filtered, ranking_measures
from rnnreranker.recover.rankings import OF_GRAPH, Visible

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
        from_graph: scorer, measure, and how far it lies above the scorer of that name without `OF_GRAPH`: difference,
            low, high, p and p_holm (over these rows); empty without a graph.
    """

    queries: int
    cases: int
    hidden: int
    negatives: int
    rows: tuple[dict[str, Any], ...]
    filters: tuple[dict[str, Any], ...]
    from_graph: tuple[dict[str, Any], ...] = ()

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
    scorers = tuple(kept[0].scores)
    of_query: dict[str, list[dict[tuple[str, str], float]]] = {}
    for case in kept:
        found = {
            (scorer, measure): value
            for scorer in scorers
            for measure, value in ranking_measures(case.scores[scorer], case.hidden, case.docids).items()
        }
        of_query.setdefault(case.qid, []).append(found)
    values = {
        (scorer, measure): np.array(
            [np.mean([found[scorer, measure] for found in every]) for every in of_query.values()]
        )
        for scorer in scorers
        for measure in MEASURES
    }
    over_query = {key: ("query", key[1]) for key in values if key[0] != "query"}
    over_context = {key: (key[0].removeprefix(OF_GRAPH), key[1]) for key in values if key[0].startswith(OF_GRAPH)}
    differences = _differences(values, over_query)
    return Recovery(
        queries=len(of_query),
        cases=len(kept),
        hidden=int(sum(case.hidden.sum() for case in kept)),
        negatives=int(sum((~case.hidden).sum() for case in kept)),
        rows=tuple(
            {"scorer": key[0], "measure": key[1], "value": float(found.mean())} | differences.get(key, {})
            for key, found in values.items()
        ),
        filters=tuple(filtered(kept, rates)),
        from_graph=tuple(
            {"scorer": key[0], "measure": key[1], **row} for key, row in _differences(values, over_context).items()
        ),
    )


def _differences(
    values: dict[tuple[str, str], np.ndarray], compared: dict[tuple[str, str], tuple[str, str]]
) -> dict[tuple[str, str], dict[str, float]]:
    """How far each key's values (Q,) lie above those of another: one family of tests."""
    tests = [paired_t_test(values[key], values[other]) for key, other in compared.items()]
    rows = {}
    for (key, other), p, p_holm in zip(compared.items(), tests, holm(tests), strict=True):
        differences = values[key] - values[other]
        low, high = bootstrap_intervals(differences[None])[0]
        rows[key] = {"difference": float(differences.mean()), "low": float(low), "high": float(high)}
        rows[key] |= {"p": p, "p_holm": p_holm}
    return rows
