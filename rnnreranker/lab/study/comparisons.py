"""Results of a study: means over seeds by query, differences with intervals, learning curves, costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.tables import interval
from rnnreranker.evaluate.comparison import differences
from rnnreranker.lab.study.request import BASE

if TYPE_CHECKING:
    import pandas

    from rnnreranker.runs import Run

RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)  # where the buckets of ranks begin
SURE = 0.05  # p after Holm's correction, below which a difference is called one

Records = Sequence[Mapping[str, Any]]
Values = dict[str, dict[str, float]]  # measure → test query → value


def study_rows(
    records: Records, groups: Mapping[str, str] | None, others: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """One row for each arm, measure and group of test queries.

    Args:
        records: of `run_trial`; all arms have the same tasks.
        groups: test query → group. others: arm → the arms that it is compared with.

    Returns:
        Rows with arm, measure, group, queries, value (mean over queries of the mean over seeds) and `against`: other
        arm → row of `differences`. Holm's correction covers all comparisons of a measure and group.

    Raises:
        InputError: the arms have different test queries.
    """
    values = _per_query(records)
    arms, measures = (list(dict.fromkeys(values.columns.get_level_values(level))) for level in (0, 1))
    if values.isna().any(axis=None):
        raise InputError("the arms were not tested on the same queries; give all of them the same tasks and seeds")
    pairs = [(arm, other) for arm in arms for other in others.get(arm, ())]
    rows = []
    for group in [None, *sorted(set((groups or {}).values()))]:
        chosen = [qid for qid in values.index if group is None or (groups or {}).get(qid) == group]
        for measure in measures:
            columns = {arm: values.loc[chosen, (arm, measure)].to_numpy() for arm in arms}
            against: dict[str, dict[str, Any]] = {arm: {} for arm in arms}
            for (arm, other), row in zip(pairs, differences(columns, pairs), strict=True):
                against[arm][other] = row
            about = {"measure": measure, "group": group or "all", "queries": len(chosen)}
            rows += [
                {"arm": arm, **about, "value": float(columns[arm].mean()), "against": against[arm]} for arm in arms
            ]
    return rows


def conclusion(rows: Sequence[Mapping[str, Any]]) -> str:
    """A sentence: the best trained arm by the first measure over all queries, and its comparisons."""
    measure = rows[0]["measure"]
    mine = [row for row in rows if (row["measure"], row["group"]) == (measure, "all")]
    best = max((row for row in mine if row["arm"] != BASE), key=lambda row: row["value"])
    several = len(mine) - (BASE in [row["arm"] for row in mine])
    first = f"On queries not trained on {best['arm']} has {measure}"
    if several > 1:
        first = f"Best of {several} trained arms on queries not trained on: {best['arm']}, {measure}"
    return "; ".join([f"{first} {best['value']:.4f}", *starmap(_beside, best["against"].items())]) + "."


def observations(records: Records) -> dict[str, Any]:
    """Further known results by arm: words, costs, distances, by_degrees, masses, positives (000, Figure 11)."""
    import pandas

    made: dict[str, Any] = {
        name: {arm: _mean([one[name] for one in own]) for arm, own in _having(name, records).items()}
        for name in ("words", "costs", "distances", "by_degrees")
    }
    made["masses"] = {
        arm: pandas.DataFrame(own).groupby("task", sort=False)["mass"].agg(list).to_dict()
        for arm, own in _having("mass", records).items()
    }
    made["positives"] = {
        arm: {when: _buckets([pair for one in own for pair in one["positives"][when]]) for when in ("before", "after")}
        for arm, own in _having("positives", records).items()
    }
    return {name: own for name, own in made.items() if own or name == "words"}


def curves(records: Records) -> dict[str, dict[str, list[float]]]:
    """Arm → step, loss and each validation measure: lists of means over the arm's trainings.

    Folds of unequal size have slightly different steps, so steps are means too.
    """
    import pandas

    by_arm: dict[str, dict[str, list[float]]] = {}
    for arm, own in _having("history", records).items():
        histories = [pandas.DataFrame(one["history"]) for one in own]
        means = pandas.concat(histories).drop(columns="inverse_temperature", errors="ignore").groupby(level=0).mean()
        means = means[: min(map(len, histories))]
        by_arm[arm] = means.to_dict("list")  # type: ignore[assignment]
    return by_arm


def chosen_steps(records: Records) -> dict[str, dict[str, float]]:
    """Arm → trainings, `unchanged` (trainings whose best step is 0), means of best_step, steps and seconds."""
    import pandas

    by_arm: dict[str, Any] = {}
    for arm, own in _having("best_step", records).items():
        table = pandas.DataFrame(own)[["best_step", "steps", "seconds"]]
        unchanged = int((table["best_step"] == 0).sum())
        by_arm[arm] = {"trainings": len(own), "unchanged": unchanged, **table.mean().to_dict()}
    return by_arm


def by_query(records: Records) -> dict[str, dict[str, dict[str, float]]]:
    """Arm → measure → test query → mean over the seeds, rounded to four digits."""
    table: Any = _per_query(records)
    return {
        arm: {measure: column.dropna().round(4).to_dict() for measure, column in table[arm].items()}
        for arm in table.columns.unique(0)
    }


def with_chosen(
    records: Records, families: Mapping[str, str], measure: str
) -> tuple[list[Mapping[str, Any]], dict[str, dict[str, Any]]]:
    """Add the arm that each family's validation queries choose, task by task; of equal arms the first.

    Args:
        records: of `run_trial`, with `checked`: measure → mean over the validation queries.
        families: arm → its family; measure: the deciding measure.

    Returns:
        The records with those of the families appended; family → task → `arm` and `validation` (arm → value).
    """
    with_families, choices = list(records), {}
    for family in dict.fromkeys(families.values()):
        arms = [arm for arm, own in families.items() if own == family]
        choices[family] = dict[str, Any]()
        for task in dict.fromkeys(record["task"] for record in records):
            mine = {arm: [one for one in records if (one["arm"], one["task"]) == (arm, task)] for arm in arms}
            values = {arm: float(np.mean([one["checked"][measure] for one in own])) for arm, own in mine.items()}
            best = max(arms, key=lambda arm: values[arm])
            choices[family][task] = {"arm": best, "validation": values}
            with_families += [{**one, "arm": family} for one in mine[best]]
    return with_families, choices


def _mean(own: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: np.mean([one[name] for one in own], axis=0).tolist() for name in own[0]}


def _buckets(pairs: Sequence[Sequence[float]]) -> list[list[float]]:
    import pandas

    ranks, shares = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    buckets = pandas.Series(shares).groupby(np.searchsorted(RANKS, ranks, side="right") - 1)
    return [[float(RANKS[number]), len(own), float(own.mean())] for number, own in buckets]  # type: ignore[call-overload]


def _having(name: str, records: Records) -> dict[str, list[Mapping[str, Any]]]:
    """Arm → its records that have an entry."""
    by_arm: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        if name in record:
            by_arm.setdefault(record["arm"] or BASE, []).append(record)
    return by_arm


def _per_query(records: Records) -> pandas.DataFrame:
    """Means over the seeds: one row a query, columns (arm, measure)."""
    import pandas

    columns = {
        arm: pandas.concat([pandas.DataFrame(one["values"]) for one in own]).groupby(level=0, sort=False).mean()
        for arm, own in _having("values", records).items()
    }
    return pandas.concat(columns, axis=1)


def _beside(other: str, gap: Mapping[str, Any]) -> str:
    name = f"{BASE}, the model as it was" if other == BASE else other
    text = f"{interval(gap['difference'], gap['low'], gap['high'])}, p {gap['p_holm']:.3f} after Holm"
    if gap["p_holm"] >= SURE:
        return f"not surely apart from {name} ({text})"
    return f"{'better' if gap['difference'] > 0 else 'worse'} than {name} ({text})"


def values_of(run: Run, qrels: pandas.DataFrame, measures: str, protocol: str, qids: Sequence[str]) -> Values:
    """Measure → query → value of a run on some queries; 0 for an empty run, e.g. of a collapsed model."""
    from rnnreranker.evaluate import evaluate
    from rnnreranker.evaluate.measures import name_of, parse_measures

    if not len(run.rows):
        return {name_of(measure): dict.fromkeys(qids, 0.0) for measure in parse_measures(measures)}
    scores = evaluate(run.as_written(), qrels, measures, protocol, topics=tuple(qids))
    return {
        measure: dict(zip(scores.topics, scores.values[0, :, column].tolist(), strict=True))
        for column, measure in enumerate(scores.measures)
    }


def means_of(values: Values) -> dict[str, float]:
    """Measure → mean over the queries; 0 without queries."""
    return {name: sum(by_query.values()) / max(len(by_query), 1) for name, by_query in values.items()}


RANGES = 10  # of equal width, of distances from 0 to 1


def distances_of(queries: np.ndarray, documents: np.ndarray, relevant: Sequence[np.ndarray]) -> dict[str, Any]:
    """Shares of pairs by distance f = (1 - cosine) / 2 (paper 004, eq. 6), and how close vectors are to one line.

    Args:
        queries: (Q, D) unit vectors; documents: (N, D) unit vectors.
        relevant: for each query the rows of its relevant documents.

    Returns:
        relevant, others: 10 shares each, of distances in [0, .1], (.1, .2], … (paper 004, 4.3); 0 without pairs.
        line: the largest eigenvalue of the second moments over the sum of all, from 1/D to 1 (one line).
    """
    counts, edges = np.zeros((2, RANGES), dtype=np.int64), np.linspace(0, 1, RANGES + 1, dtype=np.float32)
    for query, own in zip(queries, relevant, strict=True):
        bins = np.clip(np.searchsorted(edges, (1 - documents @ query) / 2, side="left") - 1, 0, RANGES - 1)
        near = np.bincount(bins[own], minlength=RANGES)
        counts += [near, np.bincount(bins, minlength=RANGES) - near]
    moments = sum(vectors.astype(np.float64).T @ vectors / len(vectors) for vectors in (queries, documents))
    values = np.linalg.eigvalsh(moments)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return {"relevant": shares[0].tolist(), "others": shares[1].tolist(), "line": float(values[-1] / values.sum())}
