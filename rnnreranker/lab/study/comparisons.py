"""Results of a study: means over seeds by query, differences with intervals, learning curves, costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.pages import render
from rnnreranker.evaluate.comparison import differences
from rnnreranker.lab.study.request import BASE

if TYPE_CHECKING:
    import pandas

    from rnnreranker.runs import Run

RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)  # where the buckets of ranks begin
RANGES = 10  # of equal width, of distances from 0 to 1
SURE = 0.05  # p after Holm's correction, below which a difference is called one
MEANS = ("words", "costs", "distances", "by_degrees")  # entries of records that are averaged

Records = Sequence[Mapping[str, Any]]
Values = dict[str, dict[str, float]]  # measure → test query → value


def per_query(records: Records) -> pandas.DataFrame:
    """Means over the seeds: one row a query, columns (arm, measure).

    Raises:
        InputError: the arms have different test queries.
    """
    import pandas

    rows = [
        (one["arm"], measure, qid, value)
        for one in records
        for measure, values in one["values"].items()
        for qid, value in values.items()
    ]
    table = pandas.DataFrame(rows, columns=["arm", "measure", "query", "value"])
    table = table.pivot_table("value", "query", ["arm", "measure"], sort=False)
    if table.isna().any(axis=None):
        raise InputError("the arms were not tested on the same queries; give all of them the same tasks and seeds")
    return table


def study_rows(
    table: pandas.DataFrame, groups: Mapping[str, str], others: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """One row for each arm, measure and group of test queries.

    Args:
        table: of `per_query`; groups: test query → group; others: arm → the arms that it is compared with.

    Returns:
        Rows with arm, measure, group, queries, value (mean over queries of the mean over seeds) and `against`: other
        arm → row of `differences`. Holm's correction covers all comparisons of a measure and group.
    """
    arms, measures = (table.columns.unique(level).tolist() for level in (0, 1))
    pairs = [(arm, other) for arm in arms for other in others.get(arm, ())]
    of, rows = table.index.map(lambda qid: groups.get(qid)), []
    for group in [None, *sorted(set(groups.values()))]:
        chosen = table if group is None else table[of == group]
        for measure in measures:
            columns = {arm: chosen[arm, measure].to_numpy() for arm in arms}
            gaps = dict(zip(pairs, differences(columns, pairs), strict=True))
            for arm in arms:
                against = {other: gap for (one, other), gap in gaps.items() if one == arm}
                about = {"arm": arm, "measure": measure, "group": group or "all", "queries": len(chosen)}
                rows.append({**about, "value": float(columns[arm].mean()), "against": against})
    return rows


def conclusion(rows: Sequence[Mapping[str, Any]]) -> str:
    """A sentence: the best trained arm by the first measure over all queries, and its comparisons."""
    measure = rows[0]["measure"]
    mine = [row for row in rows if (row["measure"], row["group"]) == (measure, "all") and row["arm"] != BASE]
    best = max(mine, key=lambda row: row["value"])
    return render("lab", "conclusion.txt.j2", best=best, arms=len(mine), sure=SURE).strip()


def observations(records: Records) -> dict[str, Any]:
    """Further known results by arm.

    words, costs, distances, by_degrees: means; masses: of each task; positives: mean probability by rank (000, Figure
    11); curves: step, loss and each validation measure, means over the trainings, since folds of unequal size have
    slightly different steps; steps: trainings, `unchanged` (trainings whose best step is 0), means of best_step, steps
    and seconds.
    """
    import pandas

    made: Any = {"words": {}}
    for name in MEANS:
        for arm, several in _having(name, records).items():
            means = {key: np.mean([one[key] for one in several], axis=0).tolist() for key in several[0]}
            made.setdefault(name, {})[arm] = means
    for arm, several in _having("positives", records).items():
        buckets = {when: _buckets(np.concatenate([one[when] for one in several])) for when in ("before", "after")}
        made.setdefault("positives", {})[arm] = buckets
    table = pandas.DataFrame(list(records))
    if "mass" in table:
        key: Any
        for key, masses in table.dropna(subset="mass").groupby(["arm", "task"], sort=False)["mass"]:
            made.setdefault("masses", {}).setdefault(key[0], {})[key[1]] = masses.tolist()
    made |= {"curves": {}, "steps": {}}
    for arm, histories in _having("history", records).items():
        several = [pandas.DataFrame(one).drop(columns="inverse_temperature", errors="ignore") for one in histories]
        means = pandas.concat(several).groupby(level=0).mean()[: min(map(len, several))]
        made["curves"][arm] = means.to_dict("list")
        own = table.loc[table["arm"] == arm, ["best_step", "steps", "seconds"]]
        unchanged = int((own["best_step"] == 0).sum())
        made["steps"][arm] = {"trainings": len(own), "unchanged": unchanged, **own.mean().to_dict()}
    return made


def with_chosen(
    records: Records, families: Mapping[str, str], measure: str
) -> tuple[list[Mapping[str, Any]], dict[str, dict[str, Any]]]:
    """Add the arm that each family's validation queries choose, task by task; of equal arms the first.

    Args:
        records: of `Studied.record`, with `checked`: measure → mean over the validation queries.
        families: arm → its family; measure: the deciding measure.

    Returns:
        The records with those of the families appended; family → task → `arm` and `validation` (arm → value).
    """
    import pandas

    more, choices = list(records), dict[Any, dict[Any, Any]]()
    mine = [one for one in records if one["arm"] in families]
    rows = [(families[one["arm"]], one["task"], one["arm"], one["checked"][measure]) for one in mine]
    means = pandas.DataFrame(rows, columns=["family", "task", "arm", "value"])
    for (family, task), own in means.groupby(["family", "task"], sort=False):
        values = own.groupby("arm", sort=False)["value"].mean()
        best = values.idxmax()
        choices.setdefault(family, {})[task] = {"arm": best, "validation": values.to_dict()}
        more += [{**one, "arm": family} for one in mine if (one["arm"], one["task"]) == (best, task)]
    return more, choices


def _buckets(pairs: np.ndarray) -> list[list[float]]:
    """[first rank, number, mean share] of each bucket of pairs of rank and share."""
    import pandas

    ranks, shares = pairs.reshape(-1, 2).T
    buckets = pandas.Series(shares).groupby(np.searchsorted(RANKS, ranks, side="right") - 1)
    return [[float(RANKS[number]), len(own), float(own.mean())] for number, own in buckets]  # type: ignore[call-overload]


def _having(name: str, records: Records) -> dict[str, list[Any]]:
    """Arm → the entries of its records that have one."""
    by_arm: dict[str, list[Any]] = {}
    for record in records:
        if name in record:
            by_arm.setdefault(record["arm"], []).append(record[name])
    return by_arm


def values_of(run: Run, qrels: pandas.DataFrame, measures: str, protocol: str, qids: Sequence[str]) -> Values:
    """Measure → query → value of a run on some queries; 0 for an empty run, e.g. of a collapsed model."""
    from rnnreranker.evaluate import evaluate
    from rnnreranker.evaluate.measures import name_of, parse_measures

    if not len(run.rows):
        return {name_of(measure): dict.fromkeys(qids, 0.0) for measure in parse_measures(measures)}
    scores = evaluate(run.as_written(), qrels, measures, protocol, topics=tuple(qids))
    return {name: dict(zip(scores.topics, scores.per_topic(name).tolist(), strict=True)) for name in scores.measures}


def means_of(values: Values) -> dict[str, float]:
    """Measure → mean over the queries; 0 without queries."""
    return {name: sum(by_query.values()) / max(len(by_query), 1) for name, by_query in values.items()}


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
