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
from rnnreranker.base.written_form import Written
from rnnreranker.lab.study.request import Arm, StudyRequest
from rnnreranker.lab.study.tasks import Task
from rnnreranker.lab.study.trial import Studied
from rnnreranker.lab.tune.objective import judged_topics
from rnnreranker.lab.tune.request import HARD, MODEL, TuneTrainRequest, check
from rnnreranker.lab.tune.space import Joint, Space
from rnnreranker.lab.tune.sweeps import WHOLE, Rows, compared, without_parts
from rnnreranker.lab.tune.trials import Report, Search, Tuned, fold_of, held_out_of, notice_if_few, search
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
        name = self.request.labeler.name
        labeler = find("labeler", name)
        known = [field.name for field in fields_of(labeler)] if issubclass(labeler.Params, RnnParams) else []
        own = {key: value for key, value in joint.rnn.to_dict().items() if key in known}
        own |= {**self.request.of_method, **(joint.labels.to_dict() if name != HARD else {})}
        return Arm("trial", joint.train, joint.train.ranking.params, Written(name, own))

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
    with tempfile.TemporaryDirectory(prefix="rnnreranker-tune-") as folder:
        trainings = load_trainings(request, folder)
        space, task = request.searched.within(request.hits), trainings.task
        training, checked = task.part(validation=False)["query_id"].nunique(), task.validation
        sizes = f"{training} to train on, {len(checked)} to validate"
        command.say(f"queries: {sizes}, {len(task.test)} to test")
        notice_if_few(len(checked), "validation queries", FEW)
        begun = time.perf_counter()
        made = tune_jointly(trainings, space, request.trials, seed=request.seed, storage=request.storage)
        command.say(f"{made.trials} trials, {made.pruned} ended early, {time.perf_counter() - begun:.1f} s")
        tuned, plain = (trainings.tested(joint) for joint in (made.params, space.fixed))
        seeds = request.final_seeds
        how = f"test queries, {seeds} seeds averaged" if seeds > 1 else "test queries"
        folds = [fold_of(made, training, tuned, plain)]
        held_out = held_out_of(how, trainings.tested(None), plain, tuned, folds)
    searched = f"{space.fixed.train.key_measure} of validation"
    about = {
        "index": request.shown("index"),
        "topics": f"{request.shown('topics')} ({sizes})",
        "encoder": str(trainings.studied.encoder),
        "method": str(Written.read(request.method)),
        "searched": f"{searched}, over candidates",
        "held out measure": f"{request.measure}, protocol {trainings.studied.protocol}, retrieval over the whole index",
        "seed": request.seed,
    }
    said = {"measure": request.measure, "seed": request.seed, "final seeds": seeds}
    rows = partial(ablations, trainings, made.params)
    return Tuned(made.params, made.params.sections(), about, said, {}, rows, made, held_out, searched)


def ablations(trainings: Trainings, joint: Joint, names: Sequence[str] = ("ablations",)) -> dict[str, Rows]:
    """Train and test without each part of similarity and labels; rows as in `compared`."""
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
    from rnnreranker.index.opening import open_index
    from rnnreranker.runs import Run
    from rnnreranker.search.queries import trained_encoder
    from rnnreranker.search.searching import first_stage_of
    from rnnreranker.train.request import split

    how = request.encoding
    encoder, described = trained_encoder(how.encoder, open_index(request.index))
    settings = {name: described.get(name) for name in ("pooling", "normalize")} | how.settings.given()
    form = str(Written(encoder, {name: value for name, value in settings.items() if value is not None}))
    qrels, texts = qrels_of(request.qrels), topics_of(request.topics)
    positive = qrels[qrels["relevance"] >= request.relevant]
    usable = [qid for qid in texts if qid in set(positive["query_id"])]
    if len(usable) < LEAST:
        shown = request.shown("qrels")
        raise InputError(f"{len(usable)} of {len(texts)} topics have a positive in {shown}: too few to cut in three")
    if request.test_topics is not None and request.test_qrels is not None:
        judged, tested = qrels_of(request.test_qrels), judged_topics(request.test_topics, request.test_qrels)
        check_held_out(usable, tested)
        share = request.validation_share
    else:
        chosen = split(usable, request.test_share, request.seed)
        judged, tested = qrels, {qid: texts[qid] for qid in usable if qid in chosen}
        usable = [qid for qid in usable if qid not in chosen]
        share = request.validation_share / (1 - request.test_share)
    checked = split(usable, share, request.seed)
    if not checked or len(checked) == len(usable):
        raise InputError(f"{len(usable)} queries with {len(checked)} to validate: expected some of each")
    topics = {**{qid: texts[qid] for qid in usable}, **tested}
    own = positive[positive["query_id"].isin(usable)]
    task = Task("tuning", request.seed, topics, own, frozenset(checked), tuple(tested))
    run = None
    if request.run is not None:
        whole = first_stage_of(request.run).head(request.hits)
        if lost := [qid for qid in usable if qid not in whole]:
            shown = request.shown("run")
            raise InputError(f"{shown}: {len(lost)} of the queries have no candidates (first: {lost[0]})")
        run = Run.from_dict({qid: dict(whole[qid]) for qid in usable})
    given: dict[str, Any] = {"encoder": form, "context": request.hits, "work": work, "device": request.device}
    given |= {"measures": request.measure, "protocol": request.protocol, "model": {MODEL: {"candidates": 1}}}
    study = StudyRequest(request.index, request.topics, request.qrels, **given)
    return Trainings(request, Studied(study, [task], judged, run), task)
