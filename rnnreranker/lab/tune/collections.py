"""`tune_collections`: choose settings on all collections but one, measure them on that one.

A cell is a collection under one first stage.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base import command
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, nearest, require
from rnnreranker.base.files import fingerprint
from rnnreranker.base.strict import read_yaml
from rnnreranker.evaluate.comparison import bootstrap_intervals
from rnnreranker.lab.tune.objective import Objective, load_objective
from rnnreranker.lab.tune.request import LeaveOutRequest, check
from rnnreranker.lab.tune.space import Space
from rnnreranker.lab.tune.trials import study_of
from rnnreranker.rnn import RnnParams

KEYS = ("index", "topics", "qrels", "run", "protocol", "encoder", "collection")
NEEDED = ("index", "topics", "qrels")
DIGITS = 6  # of gains on record
DRAWS = 100  # for every setting, at most
CAP = 0.02  # of the measure: what a cell gains beyond this counts no more
LOSS = 3.0  # a loss counts this many times as much as a gain of the same size


def capped_gain(gains: np.ndarray) -> np.ndarray:
    """(S,) float64: mean over the cells of (S, C) gains; a gain counts at most `CAP`, a loss `LOSS` times.

    >>> capped_gain(np.array([[0.09, -0.03], [0.02, 0.01]])).round(4).tolist()
    [-0.035, 0.015]
    """
    return np.where(gains < 0, LOSS * gains, np.minimum(gains, CAP)).mean(axis=-1)


def mean_gain(gains: np.ndarray) -> np.ndarray:
    """(S,) float64: mean over the cells of (S, C) gains."""
    return gains.mean(axis=-1)


RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"capped": capped_gain, "mean": mean_gain}


def tune_collections(request: LeaveOutRequest) -> tuple[dict[str, Any], dict[str, str]]:
    """What `leave_one_out` returns for the cells of a request, and cell → fingerprint of its candidates.

    Raises:
        InputError, UnavailableError, MissingDependencyError: as `tune_reranker`.
    """
    check(request)
    from rnnreranker.index.opening import open_index

    cells, objectives, opened = cells_of(request.collections), dict[str, Objective](), dict[Any, Any]()
    for name, entry in cells.items():
        own = {key: entry[key] for key in ("protocol", "encoder") if key in entry}
        named = str(entry["index"]) if isinstance(entry["index"], str | Path) else id(entry["index"])
        if named not in opened:
            opened[named] = open_index(entry["index"])
        asked = (opened[named], entry["topics"], entry["qrels"], entry.get("run"))
        objectives[name] = load_objective(dataclasses.replace(request, **own), *asked)
    collections = {name: str(entry.get("collection", name)) for name, entry in cells.items()}
    kept: dict[str, Any] = {"collections": collections, "rule": request.rule, "storage": request.storage}
    made = leave_one_out(objectives, request.searched, request.trials, request.seed, **kept)
    return made, {name: objective.fingerprint for name, objective in objectives.items()}


def leave_one_out(
    objectives: Mapping[str, Objective],
    space: Space,
    settings: int,
    seed: int = 0,
    *,
    collections: Mapping[str, str] | None = None,
    rule: str = "capped",
    storage: str | Path | None = None,
) -> dict[str, Any]:
    """For each collection the gain of the setting that the others choose, and the gain of the default.

    Settings are the default and `settings` - 1 random ones, or all of a smaller space; of equal ones the first wins.

    Args:
        objectives: cell → objective; collections: cell → collection, by default its own.
        storage: an SQLite file that keeps gains and resumes after a kill; None = memory.

    Returns:
        Plain values for JSON: settings (S), rule; place of the default by the rule over all cells, 1 = best; best: rule
        → number of its setting; default; tried: (S,) what differs from it; gains: cell → (S,) mean gains over the first
        stage; cells: name, collection, topics, base (mean of the first stage), default and chosen (gains, with the
        ends of their 95% bootstrap intervals), setting (number of the chosen one; 0 is the default).

    Raises:
        InputError: fewer than two collections, a storage of another search.
        MissingDependencyError: optuna is missing.
    """
    of = {name: (collections or {}).get(name, name) for name in objectives}
    if len(set(of.values())) < 2:
        counted = command.counted(len(set(of.values())), "collection")
        raise InputError(f"{counted}: expected two or more to leave one out")
    drawn = (space.fixed, *draw(space, settings - 1, seed))
    bases = {name: objective.base() for name, objective in objectives.items()}

    def gains_of(name: str, number: int) -> np.ndarray:
        return objectives[name].values(drawn[number]) - bases[name]

    gains = {}
    for name, objective in objectives.items():
        about = {**objective.about(objective.topics), "settings": fingerprint([one.to_dict() for one in drawn])}
        with study_of(storage, f"cell {name}", about) as (optuna, study):
            done = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
            values = [float(trial.values[0]) for trial in done]
            for number in command.progress(range(len(values), len(drawn)), unit="settings", what=f"cell {name}"):
                values.append(float(gains_of(name, number).mean()))
                study.add_trial(optuna.trial.create_trial(value=values[-1]))
        gains[name] = np.array(values)
    cells = []
    for name in objectives:
        others = [gains[other] for other in objectives if of[other] != of[name]]
        best = int(RULES[rule](np.stack(others, axis=1)).argmax())
        default, chosen = gains_of(name, 0), gains_of(name, best)
        ends = bootstrap_intervals(np.stack([default, chosen])).tolist()
        cell = {"name": name, "collection": of[name], "topics": len(default), "base": float(bases[name].mean())}
        for what, own, (low, high) in zip(("default", "chosen"), (default, chosen), ends, strict=True):
            cell |= {what: float(own.mean()), f"{what}_low": low, f"{what}_high": high}
        cells.append(cell | {"setting": best})
    worth = {name: weigh(np.stack(list(gains.values()), axis=1)) for name, weigh in RULES.items()}
    first = space.fixed.to_dict()
    return {
        "settings": len(drawn),
        "rule": rule,
        "place": 1 + int((worth[rule] > worth[rule][0]).sum()),
        "best": {name: int(values.argmax()) for name, values in worth.items()},
        "default": first,
        "tried": [{key: v for key, v in one.to_dict().items() if v != first[key]} for one in drawn],
        "gains": {name: [round(one, DIGITS) for one in values.tolist()] for name, values in gains.items()},
        "cells": cells,
    }


def draw(space: Space, count: int, seed: int) -> list[RnnParams]:
    """Random settings, the same for the same seed; a space of lists with at most `count` others returns all of them.

    Raises:
        InputError: nearly all combinations are invalid.
    """
    lists = [values for values in space.ranges.values() if isinstance(values, tuple)]
    whole = len(lists) == len(space.ranges) and math.prod(map(len, lists)) <= count + 1
    if whole:
        given = (dict(zip(space.ranges, values, strict=True)) for values in itertools.product(*lists))
        makers = (partial(space.replaced, **values) for values in given)
    else:
        optuna = require("optuna", "tuning", "'rnnreranker[tune]'")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
        makers = (partial(space.suggest, study.ask()) for _ in range(DRAWS * count))
    settings: list[RnnParams] = []
    reason: InputError | None = None
    for make in makers:
        try:
            settings.append(make())
        except InputError as error:
            reason = error
        if not whole and len(settings) == count:
            break
    if len(settings) < (1 if whole else count):
        shown = (
            "none of its values are a setting together" if whole else f"{len(settings)} of {DRAWS * count} draws are"
        )
        raise InputError(f"search space: {shown} ({reason})")
    return [one for one in settings if one != space.fixed] if whole else settings


def cells_of(given: str | Path | Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Cells by name, from a mapping or a YAML file: `cranfield-bm25: {index: …, topics: …, qrels: …, run: …}`.

    Raises:
        InputError: an unreadable file, unknown or missing keys: all of them at once.
    """
    named = isinstance(given, str | Path)
    content: Any = read_yaml(given, "collections") if isinstance(given, str | Path) else given
    shown = str(given) if named else argument("collections")
    if not isinstance(content, Mapping) or not all(isinstance(entry, Mapping) for entry in content.values()):
        raise InputError(f"{shown}: expected `name: {{index: …, topics: …, qrels: …}}` for each cell")
    problems = []
    for name, entry in content.items():
        problems += [f"{name}: unknown key {key}, {nearest(str(key), KEYS)}" for key in entry if key not in KEYS]
        problems += [f"{name}: no {key}" for key in NEEDED if key not in entry]
    if problems:
        raise InputError(f"{shown}: {'; '.join(problems)}")
    return {str(name): dict(entry) for name, entry in content.items()}
