"""Recovery over a query set: means per similarity, their differences from the query's, and filters side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.evaluate.comparison import bootstrap_intervals, holm, paired_t_test
from rnnreranker.lab.recover.detection import MEASURES, filtered, ranking_measures, weights_of
from rnnreranker.lab.recover.rankings import Visible
from rnnreranker.lab.recover.similarities import OF_GRAPH
from rnnreranker.labels.report.audit import PROBABILITIES, SIMILARITIES, by_confidence

RATES = (0.02, 0.05, 0.1, 0.2, 0.3)


JOINT = (  # what joint similarity is compared with, where there is a graph from it too
    *(("joint", "query"), ("joint", "mixed"), ("joint", "joint-geometric"), ("joint-geometric", "query")),
    *((OF_GRAPH + "joint", "query"), (OF_GRAPH + "joint", "joint")),
)
BESIDE = ("query", "mixed", "joint")  # what every teacher is compared with
VARIED = "joint, "  # before what differs from joint similarity


@dataclass(frozen=True)
class Recovery:
    """What was found.

    Attributes:
        queries, cases: queries used, and cases of visible positives in all.
        hidden, negatives: judged candidates that were ranked, over all cases.
        rows: scorer, measure, value (mean over queries of the mean over their positives); for similarity to a positive
            alone also difference from "query" with low and high (95% bootstrap interval over queries), p (paired
            t-test) and p_holm (over these rows).
        filters: see `detection.filtered`.
        from_graph: scorer, measure, and how far it lies above the scorer of that name without `OF_GRAPH`: difference,
            low, high, p and p_holm (over these rows); empty without a graph.
        joint: scorer, other, measure, and how far the scorer lies above the other, see `JOINT`; p_holm over these rows.
        ablations: scorer, measure, value, and how far it lies above "joint", of the graph above that of the graph;
            p_holm over these rows; AP alone; empty unless asked for.
        beside: scorer, of a teacher, other, measure, and how far the teacher lies above the other, see `BESIDE`; p_holm
            over these rows; empty without teachers.
        reliability: of ("similarity", that of "joint", or "mass", the probability in labels made of it) and the rows of
            `by_confidence`, every query counted alike.
    """

    queries: int
    cases: int
    hidden: int
    negatives: int
    rows: tuple[dict[str, Any], ...]
    filters: tuple[dict[str, Any], ...]
    from_graph: tuple[dict[str, Any], ...] = ()
    joint: tuple[dict[str, Any], ...] = ()
    ablations: tuple[dict[str, Any], ...] = ()
    beside: tuple[dict[str, Any], ...] = ()
    reliability: tuple[dict[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as for JSON."""
        return asdict(self)


def measure_recovery(
    cases: Iterable[Visible], rates: Sequence[float] = RATES, beside: Collection[str] = ()
) -> Recovery:
    """Measure every case under every scorer.

    Args:
        cases: of one set of scorers; rates: shares of the candidates that filters discard; beside: the scorers that
            are teachers.

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
        values_of = {
            (scorer, measure): value
            for scorer in scorers
            for measure, value in ranking_measures(case.scores[scorer], case.hidden, case.docids).items()
        }
        of_query.setdefault(case.qid, []).append(values_of)
    values = {
        (scorer, measure): np.array([np.mean([own[scorer, measure] for own in every]) for every in of_query.values()])
        for scorer in scorers
        for measure in MEASURES
    }
    varied = [scorer for scorer in scorers if VARIED in scorer]
    alone = [scorer for scorer in scorers if "joint" not in scorer and scorer not in beside]
    above_query = _differences(values, [(scorer, "query") for scorer in alone[1:]])
    over_context = [(scorer, scorer.removeprefix(OF_GRAPH)) for scorer in alone if scorer.startswith(OF_GRAPH)]
    pairs = [pair for pair in JOINT if set(pair) <= set(scorers)]
    ablated = _differences(values, [(scorer, scorer.partition(",")[0]) for scorer in varied], MEASURES[:1])
    return Recovery(
        queries=len(of_query),
        cases=len(kept),
        hidden=int(sum(case.hidden.sum() for case in kept)),
        negatives=int(sum((~case.hidden).sum() for case in kept)),
        rows=tuple(
            {"scorer": scorer, "measure": measure, "value": float(by_query.mean())}
            | above_query.get((scorer, "query", measure), {})
            for (scorer, measure), by_query in values.items()
            if scorer not in varied
        ),
        filters=tuple(filtered(kept, rates)),
        from_graph=tuple(
            {"scorer": scorer, "measure": measure, **row}
            for (scorer, _, measure), row in _differences(values, over_context).items()
        ),
        joint=tuple(
            {"scorer": scorer, "other": other, "measure": measure, **row}
            for (scorer, other, measure), row in _differences(values, pairs).items()
        ),
        ablations=tuple(
            {"scorer": scorer, "measure": measure, "value": float(values[scorer, measure].mean()), **row}
            for (scorer, _, measure), row in ablated.items()
        ),
        beside=tuple(
            {"scorer": scorer, "other": other, "measure": measure, **row}
            for (scorer, other, measure), row in _differences(
                values, [(scorer, other) for scorer in beside for other in BESIDE]
            ).items()
        ),
        reliability=tuple(_reliability(kept)),
    )


def _reliability(cases: Sequence[Visible]) -> Iterator[dict[str, Any]]:
    hidden, weights = np.concatenate([case.hidden for case in cases]), weights_of(cases)
    for name, values, edges in (
        ("similarity", [case.scores["joint"] for case in cases], SIMILARITIES),
        ("mass", [case.mass for case in cases], PROBABILITIES),
    ):
        for row in by_confidence(np.concatenate(values), hidden, edges, weights):
            yield {"of": name, **row}


def _differences(
    values: dict[tuple[str, str], np.ndarray], compared: Sequence[tuple[str, str]], measures: Sequence[str] = MEASURES
) -> dict[tuple[str, str, str], dict[str, float]]:
    """How far each scorer's values (Q,) lie above those of another, by measure: one family of tests."""
    keys = [(scorer, other, measure) for scorer, other in compared for measure in measures]
    tests = [paired_t_test(values[scorer, measure], values[other, measure]) for scorer, other, measure in keys]
    rows = {}
    for (scorer, other, measure), p, p_holm in zip(keys, tests, holm(tests) if tests else [], strict=True):
        differences = values[scorer, measure] - values[other, measure]
        low, high = bootstrap_intervals(differences[None])[0]
        row = {"difference": float(differences.mean()), "low": float(low), "high": float(high)}
        rows[scorer, other, measure] = row | {"p": p, "p_holm": p_holm}
    return rows
