"""A study: hyperparameters chosen on validation queries, then every arm on every task with every seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.process.backends import CLUSTERS, do_parts
from rnnreranker.base.process.torch_threads import one_torch_thread
from rnnreranker.lab.study.arm import Arm
from rnnreranker.lab.study.models.base import StudiedModel
from rnnreranker.lab.study.tasks import Task
from rnnreranker.lab.study.trial import run_trial

CHOICE = "nDCG@10"  # of the validation queries


@dataclass(frozen=True)
class Workers:
    """Who takes trials: how many at a time, and as of `do_parts`."""

    jobs: int = 1
    backend: str = "loky"
    address: str | None = None
    gpus: float = 0


def run_arms(
    studied: StudiedModel, tasks: Sequence[Task], arms: Sequence[Arm | None], folder: Path, workers: Workers
) -> list[dict[str, Any]]:
    """The records of all arms on all tasks, arm by arm, see `run_trial`; those taken before come from their files.

    A worker writes the record of a trial whole, so that one that dies loses the trial that it was taking.
    """
    folder = folder.absolute()  # workers of a cluster stand in folders of their own
    folder.mkdir(parents=True, exist_ok=True)
    work = [(task, arm) for arm in arms for task in tasks]
    shown = partial(progress, unit="trials", total=len(work), what="train")
    if workers.jobs == 1 and workers.backend not in CLUSTERS:
        return [_alone(studied, task, arm, folder) for task, arm in shown(work)]
    _ = studied.identity  # once, before it goes to every process
    do_parts(
        _alone,
        ((studied, task, arm, folder) for task, arm in work),
        workers=workers.jobs,
        backend=workers.backend,
        address=workers.address,
        shown=shown,
        gpus=workers.gpus,
    )
    return [_alone(studied, task, arm, folder) for task, arm in work]


def with_rates(
    studied: StudiedModel, tasks: Sequence[Task], rates: Sequence[float], folder: Path, workers: Workers
) -> tuple[list[Arm], dict[str, dict[str, dict[str, Any]]]]:
    """The arms of a study with the learning rates that are chosen for them.

    Returns:
        The arms; and arm → task name → as of `choose_rates`, of the arms that take no other's rates.
    """
    arms, chosen = list(studied.arms.values()), dict[str, dict[str, dict[str, Any]]]()
    for arm in arms:
        if arm.own.rates in ("", arm.name):
            chosen[arm.name] = choose_rates(studied, tasks, arm, rates, folder, workers)
    by_arm = {name: {task: one["rate"] for task, one in own.items()} for name, own in chosen.items()}
    return [dataclasses.replace(arm, rates=by_arm[arm.own.rates or arm.name]) for arm in arms], chosen


def choose_rates(
    studied: StudiedModel, tasks: Sequence[Task], arm: Arm, rates: Sequence[float], folder: Path, workers: Workers
) -> dict[str, dict[str, Any]]:
    """For every fold the learning rate whose trainings of an arm on it are best on their validation queries.

    A fold's own trainings alone have a say, so that no query that it tests has any. Of equal rates the lowest is taken.

    Returns:
        By task name `rate`, the one taken, and `validation`: learning rate → mean nDCG@10 of the validation queries
        over the seeds.
    """
    of_tasks = sorted({task.name for task in tasks})
    arms = [
        dataclasses.replace(arm, name=f"{arm.name}, {rate:g}", rates=dict.fromkeys(of_tasks, rate)) for rate in rates
    ]
    records = run_arms(studied, tasks, arms, folder, workers)
    chosen: dict[str, dict[str, Any]] = {}
    for name in of_tasks:
        value_of = {
            rate: float(
                np.mean([r["validation"][CHOICE] for r in records if (r["arm"], r["task"]) == (one.name, name)])
            )
            for rate, one in zip(rates, arms, strict=True)
        }
        best = min(value_of, key=lambda rate: (-value_of[rate], rate))
        chosen[name] = {"rate": best, "validation": {f"{rate:g}": value for rate, value in value_of.items()}}
    return chosen


def _alone(studied: StudiedModel, task: Task, arm: Arm | None, folder: Path) -> dict[str, Any]:
    """A trial on one thread: with several, sums round differently."""
    with one_torch_thread():
        return run_trial(studied, task, arm, folder)
