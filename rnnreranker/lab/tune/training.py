"""`tune_training`: a study whose arms Optuna proposes, with settings of labels and of training."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import fields_of, find
from rnnreranker.base.settings import hints_of
from rnnreranker.base.written_form import Written
from rnnreranker.lab.query_set import judged_topics
from rnnreranker.lab.study.request import Arm, StudyRequest
from rnnreranker.lab.study.tasks import Task, task_of, with_positive
from rnnreranker.lab.study.trial import Studied
from rnnreranker.lab.tune.request import HARD, MODEL, TuneTrainRequest, check
from rnnreranker.lab.tune.space import Joint, Space
from rnnreranker.lab.tune.sweeps import WHOLE, compared, without_parts
from rnnreranker.lab.tune.trials import Report, Rows, Search, Tuned, held_out_of, notice_if_few, search
from rnnreranker.labels.params import LabelParams
from rnnreranker.rnn import RnnParams
from rnnreranker.train.request import FEW

LEAST = 8  # queries with positives, to be cut in three


@dataclass(frozen=True, eq=False)
class Trainings:
    """What all trials of a tuning share: the request, the study and its task."""

    request: TuneTrainRequest
    studied: Studied
    task: Task

    def arm(self, joint: Joint) -> Arm:
        """The arm that trains with some settings."""
        written = Written.read(self.request.method)
        known = {field.name for field in fields_of(find("labeler", written.name))}
        own = {name: value for name, value in joint.rnn.to_dict().items() if name in known}
        own |= joint.labels.to_dict() if written.name != HARD else {}
        searched = {*hints_of(RnnParams), *hints_of(LabelParams), "label_preset"}
        own |= {name: value for name, value in written.params.items() if name not in searched}
        return Arm("trial", joint.train, joint.train.ranking.params, Written(written.name, own))

    def value(self, joint: Joint, report: Report | None = None) -> float:
        """The best validation measure of a training (`joint.train.key_measure`; larger is better).

        `report` gets the measure of each validation after the first step and may raise to stop the training.
        """
        key, seen = joint.train.key_measure, 0
        sign = -1.0 if key == "loss" else 1.0

        def on_validation(step: int, measures: dict[str, float]) -> None:
            nonlocal seen
            if report is not None and step:
                report(seen, sign * measures[key])
                seen += 1

        with tempfile.TemporaryDirectory(prefix="rnnreranker-tune-") as folder:
            trained, _ = self.studied.fitted(self.task, self.arm(joint), Path(folder), on_validation)
        return sign * trained.measures[key]

    def tested(self, joint: Joint | None) -> np.ndarray:
        """(T,) float64: the test measure of each query, mean over seeds; joint: None = the untrained encoder."""
        of_seeds = []
        for seed in range(self.request.final_seeds if joint is not None else 1):
            task = dataclasses.replace(self.task, seed=seed)
            (values,) = self.studied.record(task, None if joint is None else self.arm(joint))["values"].values()
            of_seeds.append([values[qid] for qid in task.test])
        return np.mean(of_seeds, axis=0)


def tune_training(request: TuneTrainRequest) -> Tuned:
    """Search the settings of labels and training together and measure them on queries that the search did not see.

    Raises:
        InputError: all faults of the arguments, files that do not belong together, too few queries.
        UnavailableError, MissingDependencyError: an index, an encoder or a package is not available here.
    """
    check(request)
    folder = tempfile.TemporaryDirectory(prefix="rnnreranker-tune-")  # it goes with the trainings that keep it
    trainings = load_trainings(request, folder.name)
    space, task = request.searched.within(request.hits), trainings.task
    training, checked = task.part(validation=False)["query_id"].nunique(), task.validation
    sizes = f"{training} to train on, {len(checked)} to validate"
    command.say(f"queries: {sizes}, {len(task.test)} to test")
    notice_if_few(len(checked), "validation queries", FEW)
    begun = time.perf_counter()
    made = tune_jointly(trainings, space, request.trials, seed=request.seed, storage=request.storage)
    command.say(f"{made.trials} trials, {made.pruned} ended early, {time.perf_counter() - begun:.1f} s")
    seeds = request.final_seeds
    how = f"test queries, {seeds} seeds averaged" if seeds > 1 else "test queries"
    part = (made, training, trainings.tested(made.params), trainings.tested(space.fixed))
    held_out = held_out_of(how, trainings.tested(None), [part])
    searched = f"{space.fixed.train.key_measure} of validation"
    about = {
        "index": request.shown("index"),
        "topics": f"{request.shown('topics')} ({sizes})",
        "encoder": str(trainings.studied.encoder or "that of the index"),
        "method": str(Written.read(request.method)),
        "searched": f"{searched}, over candidates",
        "held out measure": f"{request.measure}, protocol {trainings.studied.protocol}, retrieval over the whole index",
        "seed": request.seed,
    }
    said = {"measure": request.measure, "seed": request.seed, "final seeds": seeds}
    rows = partial(ablations, trainings, made.params, kept=folder)
    return Tuned(made.params, about, said, {}, rows, made, held_out, searched)


def ablations(
    trainings: Trainings, joint: Joint, names: Sequence[str] = ("ablations",), kept: object = None
) -> dict[str, Rows]:
    """Train and test without each part of similarity and labels; rows as in `compared`.

    kept: holds the folder of the trainings.
    """
    variants = {WHOLE: joint}
    for what, params in without_parts(joint.rnn).items():
        if params != joint.rnn:
            variants[what] = dataclasses.replace(joint, rnn=params)
    for what, changed in (("no n_max", {"n_max": None}), ("no boost (b 1)", {"boost": 1.0})):
        variants[what] = dataclasses.replace(joint, labels=dataclasses.replace(joint.labels, **changed))
    shown = command.progress(list(variants.items()), unit="variants", what="ablations")
    return dict.fromkeys(names, compared({what: trainings.tested(variant) for what, variant in shown}))


def tune_jointly(
    trainings: Trainings, space: Space, trials: int, *, seed: int = 0, storage: str | Path | None = None
) -> Search:
    """Search the settings whose training validates best; the first trial is the default.

    Raises:
        InputError: as `search`; the trial's queries cannot be labelled or trained on.
    """
    about = {"queries": fingerprint(trainings.studied.described(trainings.task, None))}
    random_trials = min(20, max(3, trials // 4))
    kept: dict[str, Any] = {"storage": storage, "name": "joint", "about": about}
    return search(trainings.value, space, trials, seed=seed, random_trials=random_trials, **kept)


def load_trainings(request: TuneTrainRequest, work: str | Path) -> Trainings:
    """What trials share: queries for training, validation and test.

    Raises:
        InputError: unreadable files, files that do not belong together, too few queries, an unusable index.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import check_held_out, topics_of
    from rnnreranker.search.searching import first_stage_of
    from rnnreranker.train.request import split

    judged: Any = qrels_of(request.qrels)  # type: ignore[arg-type]  # `check` refuses None
    texts = topics_of(request.topics)  # type: ignore[arg-type]
    usable = with_positive(texts, judged, request.relevant)
    if len(usable) < LEAST:
        shown = request.shown("qrels")
        raise InputError(f"{len(usable)} of {len(texts)} topics have a positive in {shown}: too few to cut in three")
    own, share, tested = judged, request.validation_share, dict[str, str]()
    if request.test_topics is not None and request.test_qrels is not None:
        judged, tested = qrels_of(request.test_qrels), judged_topics(request.test_topics, request.test_qrels)
        check_held_out(usable, tested)
    else:
        chosen, share = split(usable, request.test_share, request.seed), share / (1 - request.test_share)
        tested = {qid: text for qid, text in usable.items() if qid in chosen}
        usable = {qid: text for qid, text in usable.items() if qid not in chosen}
    how: dict[str, Any] = {"share": share, "relevant": request.relevant, "one_each": False}
    task = task_of("tuning", request.seed, usable | tested, own, [*usable], tested, **how)
    if not 0 < len(task.validation) < len(usable):
        raise InputError(f"{len(usable)} queries with {len(task.validation)} to validate: expected some of each")
    run = None
    if request.run is not None:
        run = first_stage_of(request.run).head(request.hits)
        run = run.of_queries([qid in usable for qid in run.qids])
        if lost := [qid for qid in usable if qid not in run]:
            shown = request.shown("run")
            raise InputError(f"{shown}: {len(lost)} of the queries have no candidates (first: {lost[0]})")
    given: dict[str, Any] = {"context": request.hits, "work": work, "device": request.device}
    given |= {"encoder": request.encoder and str(Written.read(request.encoder)), "model": {MODEL: {"candidates": 1}}}
    given |= {"measures": request.measure, "protocol": request.protocol}
    study = StudyRequest(request.index, request.topics, request.qrels, **given)  # type: ignore[arg-type]
    return Trainings(request, Studied(study, [task], judged, run), task)
