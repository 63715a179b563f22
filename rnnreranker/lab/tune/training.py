"""`tune_training`: a study whose arms Optuna proposes, with settings of labels and of training."""

from __future__ import annotations

import dataclasses
import tempfile
from typing import Any

import numpy as np

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import fields_of, find
from rnnreranker.base.settings import Written
from rnnreranker.lab.study.request import Arm
from rnnreranker.lab.study.tasks import task_of, with_positive
from rnnreranker.lab.study.trial import Studied
from rnnreranker.lab.tune.request import ARM, HARD, TuneTrainRequest, check
from rnnreranker.lab.tune.space import Joint, Space
from rnnreranker.lab.tune.sweeps import ablations
from rnnreranker.lab.tune.trials import Search, Tuned, held_out_of, notice_if_few, search
from rnnreranker.train.request import FEW


class Trainings:
    """What all trials of a tuning share: the study, and its task, queries for training, validation and test.

    Args:
        request: a `TuneTrainRequest`; work: the folder of the trials.

    Raises:
        InputError: unreadable files, files that do not belong together, too few queries, an unusable index.
    """

    def __init__(self, request: Any, work: Any) -> None:
        from rnnreranker.data.qrels import qrels_of
        from rnnreranker.data.topics import check_held_out, topics_of
        from rnnreranker.search.searching import first_stage_of
        from rnnreranker.train.request import split

        judged = own = qrels_of(request.qrels)
        usable, share = with_positive(topics_of(request.topics), own, request.relevant), request.validation_share
        if request.test_topics is not None:
            judged = qrels_of(request.test_qrels)
            tested = with_positive(topics_of(request.test_topics), judged, request.relevant)
            check_held_out(usable, tested)
        else:
            chosen, share = split(usable, request.test_share, request.seed), share / (1 - request.test_share)
            tested = {qid: usable.pop(qid) for qid in [*usable] if qid in chosen}
        how: Any = {"share": share, "relevant": request.relevant, "one_each": False}
        self.request, texts = request, usable | tested
        self.task = task_of("tuning", request.seed, texts, own, [*usable], tested, **how)
        if not 0 < (checked := len(self.task.validation)) < len(usable):
            raise InputError(f"{len(usable)} queries with {checked} to validate: expected some of each")
        run = None
        if request.run is not None:
            run = first_stage_of(request.run).head(request.hits)
            if lost := [qid for qid in usable if qid not in run]:
                shown = f"{len(lost)} of the queries have no candidates (first: {lost[0]})"
                raise InputError(f"{request.shown('run')}: {shown}")
        model = {Written.read(request.model).name: {"candidates": 1}}  # so that `hits` are retrieved
        study = dataclasses.replace(request.study, work=work, model=model)
        self.studied = Studied(study, [self.task], judged, run)

    def record(self, joint: Joint | None, seed: int) -> dict[str, Any]:
        """The study's trial of some settings, None = the untrained encoder."""
        task = dataclasses.replace(self.task, seed=seed)
        if joint is None:
            return self.studied.record(task, None)
        written, values = Written.read(self.request.method), joint.rnn.to_dict()
        own = {
            field.name: values[field.name] for field in fields_of(find("labeler", written.name)) if field.name in values
        }
        own |= {} if written.name == HARD else joint.labels.to_dict()
        method = dataclasses.replace(written, params={**written.params, **own})
        return self.studied.record(task, Arm(ARM, joint.train, method))

    def value(self, joint: Joint) -> float:
        """The best validation measure of a training (`joint.train.key_measure`; larger is better)."""
        key = joint.train.key_measure
        return float(self.record(joint, self.task.seed)["validation"][key]) * (-1 if key == "loss" else 1)

    def tested(self, joint: Joint | None) -> np.ndarray:
        """(T,) float64: the test measure of each query, mean over seeds; joint: None = the untrained encoder."""
        records = [self.record(joint, seed) for seed in range(self.request.final_seeds if joint else 1)]
        values = [own for one in records for own in one["values"].values()]
        return np.mean([[own[qid] for qid in self.task.test] for own in values], axis=0)


def tune_training(request: TuneTrainRequest, work: str | None = None) -> Tuned:
    """Search the settings of labels and training together and measure them on queries that the search did not see.

    work: the folder of the trials; None = `STORAGE.trials`, without a storage a temporary one.

    Raises:
        InputError: all faults of the arguments, files that do not belong together, too few queries.
        UnavailableError, MissingDependencyError: an index, an encoder or a package is not available here.
    """
    check(request)
    if work is None and request.storage is None:
        with tempfile.TemporaryDirectory(prefix="rnnreranker-tune-") as folder:
            return tune_training(request, folder)
    trainings = Trainings(request, work or f"{request.storage}.trials")
    space, task, seeds = request.searched.within(request.hits), trainings.task, request.final_seeds
    training, checked = task.part(validation=False)["query_id"].nunique(), len(task.validation)
    command.say(f"queries: {training} to train on, {checked} to validate, {len(task.test)} to test")
    notice_if_few(checked, "validation queries", FEW)
    made = tune_jointly(trainings, space, request.trials, seed=request.seed, storage=request.storage)
    several = {"base": None, "default": space.fixed, "tuned": made.params}
    values = {name: trainings.tested(joint) for name, joint in several.items()}
    held_out = held_out_of(f"test queries, {command.counted(seeds, 'seed')}", [(made, training, values)])
    said = {"measure": request.measure, "protocol": trainings.studied.protocol, "topics": training + checked}
    said |= {"seed": request.seed, "final seeds": seeds}
    sweeps = {name: ablations(trainings.tested, made.params) for name in request.sweeps}
    return Tuned(request, made.params, said, {}, made, held_out, sweeps)


def tune_jointly(trainings: Trainings, space: Space, trials: int, *, seed: int = 0, storage: Any = None) -> Search:
    """Search the settings whose training validates best; the first trial is the default.

    Raises:
        InputError: as `search`; the trial's queries cannot be labelled or trained on.
    """
    about = {"queries": fingerprint(trainings.studied.described(trainings.task, None))}
    kept: Any = {"storage": storage, "name": "joint", "about": about, "seed": seed}
    return search(trainings.value, space, trials, random_trials=min(20, max(3, trials // 4)), **kept)
