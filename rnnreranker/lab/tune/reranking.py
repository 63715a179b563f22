"""`tune_reranker`: search settings of rNN reranking for a query set and measure their value."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from rnnreranker.base import command
from rnnreranker.lab.tune.objective import judged_topics, load_objective
from rnnreranker.lab.tune.request import TuneRequest, check
from rnnreranker.lab.tune.sweeps import sweep
from rnnreranker.lab.tune.trials import Tuned, cross_validate, fold_of, held_out_of, notice_if_few, tune

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

    if request.test_topics is not None and request.test_qrels is not None:
        tested = judged_topics(request.test_topics, request.test_qrels)
        check_held_out(judged_topics(request.topics, request.qrels), tested)
    index = open_index(request.index)
    objective = load_objective(request, index, request.topics, request.qrels, request.run, request.encoded_queries)
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
        if request.test_topics is not None and request.test_qrels is not None:
            test = load_objective(request, index, request.test_topics, request.test_qrels, request.test_run)
            tuned, default = test.values(study.params), test.values(space.fixed)
            held_out = held_out_of("test set", test.base(), default, tuned, [fold_of(study, count, tuned, default)])
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
    return Tuned(params, params.to_dict(), about, said, inputs, rows, study, held_out)
