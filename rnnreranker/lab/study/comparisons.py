"""What a study found: seeds averaged per query, differences with intervals, curves averaged over trainings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.evaluate.comparison import bootstrap_intervals, holm, paired_t_test
from rnnreranker.lab.study.arm import BASE

RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)  # where the buckets of ranks begin

Records = Sequence[Mapping[str, Any]]


def study_rows(
    records: Records, groups: Mapping[str, str] | None, others: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """One row an arm, a measure and a group of test queries.

    Args:
        records: of `run_trial`, all arms over the same tasks.
        groups: test query → group; every group is reported beside all queries.
        others: arm → those that it is compared with.

    Returns:
        Rows with arm, measure, group, queries, value (mean over queries of the mean over seeds) and, where another arm
        is compared with, `against` → {difference, low, high (95%, bootstrap over queries), p (paired t-test), p_holm}.
        Holm's correction is over all comparisons of a measure and group.

    Raises:
        InputError: arms that were not tested on the same queries.
    """
    values = _per_query(records)
    arms = list(dict.fromkeys(arm for arm, _ in values))
    measures = list(dict.fromkeys(measure for _, measure in values))
    qids = list(values[arms[0], measures[0]])
    if any(set(of_query) != set(qids) for of_query in values.values()):
        raise InputError("the arms were not tested on the same queries; give all of them the same tasks and seeds")
    names = [None, *sorted(set((groups or {}).values()))]
    rows = []
    for group in names:
        chosen = [qid for qid in qids if group is None or (groups or {}).get(qid) == group]
        for measure in measures:
            columns = {arm: np.array([values[arm, measure][qid] for qid in chosen]) for arm in arms}
            rows += _compared(columns, measure, group or "all", others)
    return rows


def curves(records: Records) -> dict[str, dict[str, list[float]]]:
    """Arm → step, loss, RR@10, nDCG@10, … of validation, each a list: means over the arm's trainings by validation.

    Trainings on folds of unequal size differ by a step or so; the steps are means as well.
    """
    by_arm: dict[str, dict[str, list[float]]] = {}
    for arm, own in _by_arm(records).items():
        histories = [record["history"] for record in own]
        length = min(map(len, histories))
        by_arm[arm] = {
            name: np.mean([[entry[name] for entry in history[:length]] for history in histories], axis=0).tolist()
            for name in histories[0][0]
            if name != "inverse_temperature"
        }
    return by_arm


def positives(records: Records) -> dict[str, dict[str, list[list[float]]]]:
    """Arm → before, after: [first rank of a bucket, positives in it, their mean probability] (000, Figure 11)."""
    by_arm: dict[str, dict[str, list[list[float]]]] = {}
    for arm, own in _by_arm(records).items():
        by_arm[arm] = {}
        for when in ("before", "after"):
            pairs = [pair for record in own for pair in record["positives"][when]]
            ranks, shares = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
            bucket = np.searchsorted(RANKS, ranks, side="right") - 1
            by_arm[arm][when] = [
                [float(start), int((bucket == number).sum()), float(shares[bucket == number].mean())]
                for number, start in enumerate(RANKS)
                if (bucket == number).any()
            ]
    return by_arm


def chosen_steps(records: Records) -> dict[str, dict[str, float]]:
    """Arm → trainings, those whose best step was 0 (the encoder as it was), mean best step, mean steps, seconds."""
    by_arm = {}
    for arm, own in _by_arm(records).items():
        by_arm[arm] = {"trainings": len(own), "unchanged": sum(record["best_step"] == 0 for record in own)}
        by_arm[arm] |= {name: float(np.mean([one[name] for one in own])) for name in ("best_step", "steps", "seconds")}
    return by_arm


def masses(records: Records) -> dict[str, dict[str, list[float]]]:
    """Arm → task → the share of probability that was learnt to leave the positives, of every seed; empty without."""
    by_arm: dict[str, dict[str, list[float]]] = {}
    for arm, own in _by_arm(records).items():
        for record in own:
            if "mass" in record:
                by_arm.setdefault(arm, {}).setdefault(record["task"], []).append(record["mass"]["share"])
    return by_arm


def words(records: Records) -> dict[str, dict[str, float]]:
    """Arm → the use of words in the test (see `word_use`), means over its trainings; empty where none has any."""
    by_arm: dict[str, list[Mapping[str, float]]] = {}
    for record in records:
        if "words" in record:
            by_arm.setdefault(record["arm"] or BASE, []).append(record["words"])
    return {arm: {name: float(np.mean([one[name] for one in own])) for name in own[0]} for arm, own in by_arm.items()}


def costs(records: Records) -> dict[str, dict[str, float]]:
    """Arm → mean seconds of a training, and of making its labels and finding its negatives; those that say them."""
    by_arm = {}
    for arm, own in _by_arm(records).items():
        own_costs = [record["costs"] for record in own if "costs" in record]
        if own_costs:
            by_arm[arm] = {name: float(np.mean([one[name] for one in own_costs])) for name in ("training", "labelling")}
    return by_arm


def by_query(records: Records) -> dict[str, dict[str, dict[str, float]]]:
    """Arm → measure → test query → the mean over the seeds, to four digits: what intervals of other orders stand on."""
    by_arm: dict[str, dict[str, dict[str, float]]] = {}
    for (arm, measure), values in _per_query(records).items():
        by_arm.setdefault(arm, {})[measure] = {qid: round(value, 4) for qid, value in values.items()}
    return by_arm


def _by_arm(records: Records) -> dict[str, list[Mapping[str, Any]]]:
    """The records of every trained arm."""
    by_arm: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        if record["arm"]:
            by_arm.setdefault(record["arm"], []).append(record)
    return by_arm


def _per_query(records: Records) -> dict[tuple[str, str], dict[str, float]]:
    """(arm, measure) → query → mean over the seeds."""
    gathered: dict[tuple[str, str], dict[str, list[float]]] = {}
    for record in records:
        for measure, of_query in record["values"].items():
            column = gathered.setdefault((record["arm"] or BASE, measure), {})
            for qid, value in of_query.items():
                column.setdefault(qid, []).append(value)
    return {key: {qid: float(np.mean(values)) for qid, values in column.items()} for key, column in gathered.items()}


def _compared(
    columns: Mapping[str, np.ndarray], measure: str, group: str, others: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    pairs = [(arm, other) for arm in columns for other in others.get(arm, ())]
    tests = [paired_t_test(columns[arm], columns[other]) for arm, other in pairs]
    corrected = holm(tests) if tests else []
    rows = []
    for arm, column in columns.items():
        row: dict[str, Any] = {"arm": arm, "measure": measure, "group": group, "queries": len(column)}
        row |= {"value": float(column.mean()), "against": {}}
        for (one, other), p, p_holm in zip(pairs, tests, corrected, strict=True):
            if one == arm:
                differences = column - columns[other]
                low, high = bootstrap_intervals(differences[None])[0].tolist()
                difference = {"difference": float(differences.mean()), "low": low, "high": high}
                row["against"][other] = difference | {"p": p, "p_holm": p_holm}
        rows.append(row)
    return rows
