"""`tune_training`: a study whose arm Optuna changes, in its settings of labels and of training."""

from __future__ import annotations

import dataclasses
import tempfile
from typing import Any

import numpy as np

from rnnreranker.base import command
from rnnreranker.base.method import fields_of, find
from rnnreranker.lab.study.request import Arm
from rnnreranker.lab.study.studying import load_study
from rnnreranker.lab.tune.request import Joint, TuneTrainRequest, check_training
from rnnreranker.lab.tune.trials import Tuned, held_out_of, notice_if_few, search
from rnnreranker.train.request import FEW


def tune_training(request: TuneTrainRequest) -> Tuned:
    """Search the settings of labels and training together and measure them on queries that the search did not see.

    The search trains on the first task of the study, and the test on that task with every seed.

    Raises:
        InputError: all faults of the arguments, files that do not belong together, too few queries.
        UnavailableError, MissingDependencyError: an index, an encoder or a package is not available here.
    """
    check_training(request)
    if request.work is None and request.storage is None:
        with tempfile.TemporaryDirectory(prefix="rnnreranker-tune-") as folder:
            return tune_training(dataclasses.replace(request, work=folder))
    studied, tasks = load_study(dataclasses.replace(request, work=request.work or f"{request.storage}.trials"))
    task, space = tasks[0], request.searched.within(request.context)
    training, checked = task.part(validation=False)["query_id"].nunique(), len(task.validation)
    command.say(f"queries: {training} to train on, {checked} to validate, {len(task.test)} to test")
    notice_if_few(checked, "validation queries", FEW)

    def value(joint: Joint) -> float:
        """The best validation measure of a training; larger is better."""
        key = joint.train.key_measure
        return float(studied.record(task, arm_of(request, joint))["validation"][key]) * (-1 if key == "loss" else 1)

    def tested(joint: Joint | None) -> np.ndarray:
        """(T,) float64: the test measure of each query, mean over seeds; joint: None = the untrained encoder."""
        arm = None if joint is None else arm_of(request, joint)
        [*every] = (studied.record(one, arm)["values"] for one in tasks if one.name == task.name)
        return np.mean([[own[qid] for qid in task.test] for values in every for own in values.values()], axis=0)

    kept: Any = {"storage": request.storage, "about": studied.described(task, request.chosen[0]), "seed": request.seed}
    first = min(20, max(3, request.trials // 4))
    made = search(value, space, request.trials, name="joint", random_trials=first, **kept)
    values = {"base": tested(None), "default": tested(space.fixed), "tuned": tested(made.params)}
    how = f"test queries, {command.counted(request.seeds, 'seed')}"
    said = {"measure": request.measures, "protocol": studied.protocol, "topics": training + checked}
    said |= {"seed": request.seed, "final seeds": request.seeds}
    return Tuned(request, made.params, said, {}, made, held_out_of(how, [(made, training, values)]))


def arm_of(request: TuneTrainRequest, joint: Joint) -> Arm:
    """The arm of the request with other settings."""
    [arm] = request.chosen
    known = fields_of(find("labeler", arm.method.name))
    own = {name: value for name, value in joint.rnn.to_dict().items() if name in known}
    own |= {} if arm.hard else joint.labels.to_dict()
    method = dataclasses.replace(arm.method, params={**arm.method.params, **own})
    return dataclasses.replace(arm, params=joint.train, method=method)
