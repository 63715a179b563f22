"""`tune_reranker`: search settings of rNN reranking for a query set and measure their value."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from rnnreranker.base import command
from rnnreranker.lab.tune.objective import Objective, judged_topics, load_objective
from rnnreranker.lab.tune.request import TuneRequest, check
from rnnreranker.lab.tune.space import Space
from rnnreranker.lab.tune.sweeps import sweep
from rnnreranker.lab.tune.trials import Report, Search, Tuned, held_out_of, notice_if_few, search
from rnnreranker.rnn import RnnParams

FEW = 50  # topics below which the best of many trials is mostly luck


def tune_reranker(request: TuneRequest) -> Tuned:
    """Search the settings of rNN reranking on a query set and measure them on topics that the search did not see.

    Raises:
        InputError: all faults of the arguments, files that do not belong together, topics both searched and tested.
        UnavailableError, MissingDependencyError: an index, an encoder or optuna is not available here.
    """
    check(request)
    from rnnreranker.data.topics import check_held_out
    from rnnreranker.index.opening import open_index

    given: tuple[Any, Any] = (request.topics, request.qrels)
    apart: tuple[Any, Any] = (request.test_topics, request.test_qrels)
    if apart[0] is not None:
        check_held_out(judged_topics(*given), judged_topics(*apart))
    index = open_index(request.index)  # type: ignore[arg-type]  # `check` refuses None
    objective = load_objective(request, index, *given, request.run, request.encoded_queries)
    count = len(objective.topics)
    lacking = f"; {objective.lacking} judged ones without candidates, left out" if objective.lacking else ""
    command.say(f"{command.counted(count, 'topic')} with judgements and candidates{lacking}")
    notice_if_few(count, "topics", FEW)
    space, trials = request.searched.within(objective.deepest), request.trials
    said: dict[str, Any] = {"measure": request.measure, "protocol": objective.protocol, "topics": count}
    study = held_out = None
    if trials:
        started = time.perf_counter()
        kept: dict[str, Any] = {"seed": request.seed, "storage": request.storage}
        study = tune(objective, space, trials, **kept)
        if apart[0] is not None:
            test = load_objective(request, index, *apart, request.test_run)
            part = (study, count, test.values(study.params), test.values(space.fixed))
            held_out = held_out_of("test set", test.base(), [part])
        else:
            held_out = cross_validate(objective, space, trials, request.folds, **kept)
        command.say(f"{study.trials} trials a study, {time.perf_counter() - started:.1f} s")
        said["seed"] = request.seed
    params = study.params if study else space.fixed
    about = {
        "index": request.shown("index"),
        "topics": f"{request.shown('topics')} ({count} judged)",
        "candidates": f"dense, {request.hits} hits" if request.run is None else request.shown("run"),
        "measure": f"{request.measure}, protocol {objective.protocol}",
        "seed": request.seed,
    }
    inputs = {"index": objective.vectors.fingerprint}
    rows = partial(sweep, objective=objective, params=params)
    return Tuned(params, about, said, inputs, rows, study, held_out)


def tune(
    objective: Objective,
    space: Space,
    trials: int,
    *,
    topics: tuple[str, ...] | None = None,
    name: str = "all topics",
    **kept: Any,
) -> Search:
    """Search the settings that rank some topics best (None = all); kept: seed and storage."""
    chosen = objective.topics if topics is None else topics

    def mean(params: RnnParams, report: Report) -> float:
        return float(objective.values(params, chosen).mean())

    return search(mean, space, trials, name=name, about=objective.about(chosen), **kept)


def cross_validate(objective: Objective, space: Space, trials: int, folds: int, **kept: Any) -> dict[str, Any]:
    """Tune on all folds but one and measure on that one, in turn; kept: seed and storage, see `tune`.

    Raises:
        InputError: as `Objective.folds` and `search`.
    """
    parts, bases = [], []
    for fold, (train, test) in enumerate(objective.folds(folds)):
        made = tune(objective, space, trials, topics=train, name=f"fold {fold}", **kept)
        parts.append((made, len(train), objective.values(made.params, test), objective.values(space.fixed, test)))
        bases.append(objective.base(test))
    return held_out_of(f"{folds}-fold cross-validation", np.concatenate(bases), parts)
