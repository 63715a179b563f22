"""One trial: an arm trained on one task with one seed, and what its model is worth on the test queries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.lab.study.arm import Arm
from rnnreranker.lab.study.tasks import Task

if TYPE_CHECKING:
    import pandas

    from rnnreranker.runs import Run

VERSION = 3  # of what a trial computes: raise it when results change
Values = dict[str, dict[str, float]]  # measure → test query → value


def run_trial(studied: Any, task: Task, arm: Arm | None, folder: Path) -> dict[str, Any]:
    """The record of a trial, from its file in `folder` where it was taken before; arm: None = the model as it is.

    Returns:
        arm, task, seed, seconds, `values` (measure → test query → value), and of a training: best_step, steps,
        validation (at the best step), history and positives.
    """
    described = None if arm is None else studied.described(task, arm)
    positives = task.positives.to_numpy().tolist()
    name = fingerprint(studied.identity, task.topics, positives, sorted(task.validation), task.test, described)
    path = folder / f"{name}.json"
    if path.is_file():
        return read_trial(path) | {"arm": arm and arm.name}
    begun = time.perf_counter()
    record: dict[str, Any] = {"arm": arm and arm.name, "task": task.name, "seed": task.seed}
    record |= studied.untrained(task) if arm is None else studied.trained(task, arm)
    record["seconds"] = round(time.perf_counter() - begun, 2)
    write_json(path, record)
    return record


def read_trial(path: Path) -> dict[str, Any]:
    """The record of a trial that was taken before.

    Raises:
        InputError: a file that is not such a record.
    """
    repair = "delete it, and the trial is taken again"
    record = read_json(path, "record of a trial", repair)
    values = record.get("values") if isinstance(record, dict) else None
    of_topics = list(values.values()) if isinstance(values, dict) else []
    if not of_topics or not all(
        isinstance(by_query, dict) and all(type(value) is float for value in by_query.values())
        for by_query in of_topics
    ):
        raise InputError(f"{path}: no record of a trial, with the values of measures by topic; {repair}")
    return record


def values_of(run: Run, qrels: pandas.DataFrame, measures: str, protocol: str, qids: Sequence[str]) -> Values:
    """Measure → query → value of a run on some queries.

    They are 0 where the run found nothing at all, as that of a collapsed model does.
    """
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
    """Measure → the mean over the queries; 0 without any."""
    return {name: sum(by_query.values()) / max(len(by_query), 1) for name, by_query in values.items()}
