"""A study: hyperparameters chosen on validation queries, then every arm on every task with every seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.process.interrupts import left_to_this_process
from rnnreranker.base.process.torch_threads import one_torch_thread
from rnnreranker.lab.study.query.arms import Hyperparameters, QueryArm
from rnnreranker.lab.study.tasks import Task
from rnnreranker.lab.study.trial import Arm, Setting, run_trial
from rnnreranker.train.query.params import TrainParams

CHOICE = "nDCG@10"  # of the validation queries


def run_arms(
    setting: Setting, tasks: Sequence[Task], arms: Sequence[Arm | None], folder: Path, jobs: int = 1
) -> list[dict[str, Any]]:
    """The records of all arms on all tasks, arm by arm; those taken before come from their files.

    Args:
        setting: shared by all trials.
        tasks: every task with every seed.
        arms: None = the encoder as it is.
        folder: where records are kept.
        jobs: processes; results do not depend on it.

    Returns:
        A list of records, see `run_trial`.
    """
    from joblib import Parallel, delayed

    folder.mkdir(parents=True, exist_ok=True)
    work = [(task, arm) for arm in arms for task in tasks]
    if jobs == 1:
        return [_alone(setting, task, arm, folder) for task, arm in progress(work, unit="trials", what="train")]
    _ = setting.identity  # once, before the setting goes to every process
    pool = Parallel(n_jobs=jobs, return_as="generator")
    with left_to_this_process():
        records = pool(delayed(_alone)(setting, task, arm, folder) for task, arm in work)
        return list(progress(records, unit="trials", total=len(work), what="train"))


def choose_rates(
    setting: Setting,
    tasks: Sequence[Task],
    method: str,
    params: TrainParams,
    rates: Sequence[float],
    folder: Path,
    jobs: int = 1,
) -> tuple[Hyperparameters, dict[str, dict[str, Any]]]:
    """For every fold the learning rate whose trainings on it are best on their validation queries.

    A fold's own trainings alone have a say, so that no query that it tests has any. Of equal rates the lowest is taken.

    Returns:
        The parameters with these rates, and by task name `rate`, the one taken, and `validation`: learning rate → mean
        nDCG@10 of the validation queries over the seeds.
    """
    arms = [
        QueryArm(f"{method}, {rate:g}", method, Hyperparameters(params).replaced(learning_rate=rate)) for rate in rates
    ]
    records = run_arms(setting, tasks, arms, folder, jobs)
    chosen: dict[str, dict[str, Any]] = {}
    for name in sorted({task.name for task in tasks}):
        value_of = {
            rate: float(
                np.mean([r["validation"][CHOICE] for r in records if (r["arm"], r["task"]) == (arm.name, name)])
            )
            for rate, arm in zip(rates, arms, strict=True)
        }
        best = min(value_of, key=lambda rate: (-value_of[rate], rate))
        chosen[name] = {"rate": best, "validation": {f"{rate:g}": value for rate, value in value_of.items()}}
    return Hyperparameters(params, {name: choice["rate"] for name, choice in chosen.items()}), chosen


def _alone(setting: Setting, task: Task, arm: Arm | None, folder: Path) -> dict[str, Any]:
    """A trial on one thread: with several, sums round differently."""
    with one_torch_thread():
        return run_trial(setting, task, arm, folder)
