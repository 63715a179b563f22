"""`tune_collections`: choose settings on all collections but one, measure them on that one.

A cell is a collection under one first stage.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base import command
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, nearest, refuse, require
from rnnreranker.base.files import fingerprint
from rnnreranker.base.strict import read_yaml
from rnnreranker.evaluate.comparison import differences
from rnnreranker.lab.tune.request import TuneRequest, check
from rnnreranker.lab.tune.reranking import Objective, load_objective
from rnnreranker.lab.tune.space import Space
from rnnreranker.lab.tune.trials import study_of
from rnnreranker.rnn import RnnParams

KEYS = ("index", "topics", "qrels", "run", "protocol", "encoder", "collection")
NEEDED = ("index", "topics", "qrels")
DIGITS = 6  # of gains on record
DRAWS = 30  # for every setting, at most
CAP = 0.02  # of the measure: what a cell gains beyond this counts no more
LOSS = 3.0  # a loss counts this many times as much as a gain of the same size


def capped_gain(gains: np.ndarray) -> np.ndarray:
    """(S,) float64: mean over the cells of (S, C) gains; a gain counts at most `CAP`, a loss `LOSS` times.

    >>> capped_gain(np.array([[0.09, -0.03], [0.02, 0.01]])).round(4).tolist()
    [-0.035, 0.015]
    """
    return np.where(gains < 0, LOSS * gains, np.minimum(gains, CAP)).mean(axis=-1)


RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "capped": capped_gain,
    "mean": lambda gains: gains.mean(axis=-1),
}


def tune_collections(request: TuneRequest) -> tuple[dict[str, Any], dict[str, str]]:
    """What `leave_one_out` returns for the cells of a request, and cell → fingerprint of its candidates.

    Raises:
        InputError, UnavailableError, MissingDependencyError: as `tune_reranker`.
    """
    check(request)
    from rnnreranker.index.opening import open_index

    cells, objectives, once = cells_of(request.collections), dict[str, Objective](), functools.cache(open_index)
    for name, entry in cells.items():
        own = {key: entry[key] for key in ("protocol", "encoder") if key in entry}
        index = once(entry["index"]) if isinstance(entry["index"], str | Path) else entry["index"]
        asked = (index, entry["topics"], entry["qrels"], entry.get("run"))
        objectives[name] = load_objective(dataclasses.replace(request, **own), *asked)
    collections = {name: str(entry.get("collection", name)) for name, entry in cells.items()}
    kept: dict[str, Any] = {"collections": collections, "rule": request.rule or "capped", "storage": request.storage}
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
    import pandas

    of = {name: (collections or {}).get(name, name) for name in objectives}
    if len(set(of.values())) < 2:
        counted = command.counted(len(set(of.values())), "collection")
        raise InputError(f"{counted}: expected two or more to leave one out")
    drawn = (space.fixed, *draw(space, settings - 1, seed))
    bases = {name: objective.base() for name, objective in objectives.items()}

    gains = {}
    for name, objective in objectives.items():
        about = {**objective.about(objective.topics), "settings": fingerprint([one.to_dict() for one in drawn])}
        with study_of(storage, f"cell {name}", about) as (optuna, study):
            done = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
            for number in command.progress(range(len(done), len(drawn)), unit="settings", what=f"cell {name}"):
                done.append(
                    optuna.trial.create_trial(value=float((objective.values(drawn[number]) - bases[name]).mean()))
                )
                study.add_trial(done[-1])
        gains[name] = [trial.value for trial in done]
    table, cells = pandas.DataFrame(gains), list[dict[str, Any]]()
    for name in objectives:
        others = table[[other for other in objectives if of[other] != of[name]]].to_numpy()
        best = int(RULES[rule](others).argmax())
        values = {what: objectives[name].values(drawn[n]) for what, n in (("default", 0), ("chosen", best))}
        gaps = differences({**values, "base": bases[name]}, [(what, "base") for what in values])
        cell = {"name": name, "collection": of[name], "topics": len(bases[name]), "base": float(bases[name].mean())}
        for what, gap in zip(values, gaps, strict=True):
            cell |= {what: gap["difference"], f"{what}_low": gap["low"], f"{what}_high": gap["high"]}
        cells.append(cell | {"setting": best})
    worth = {name: weigh(table.to_numpy()) for name, weigh in RULES.items()}
    first = space.fixed.to_dict()
    return {
        "settings": len(drawn),
        "rule": rule,
        "place": 1 + int((worth[rule] > worth[rule][0]).sum()),
        "best": {name: int(values.argmax()) for name, values in worth.items()},
        "default": first,
        "tried": [{key: v for key, v in one.to_dict().items() if v != first[key]} for one in drawn],
        "gains": table.round(DIGITS).to_dict("list"),
        "cells": cells,
    }


def draw(space: Space, count: int, seed: int) -> list[RnnParams]:
    """At most `count` different random settings beside the fixed one, the same for the same seed.

    A space of fewer settings gives all of them, as far as `DRAWS` draws for each of `count` find them.

    Raises:
        InputError: no combination is valid.
    """
    optuna = require("optuna", "tuning", "'rnnreranker[tune]'")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    settings, reason = dict[RnnParams, None](), ""
    for _ in range(DRAWS * count):
        try:
            settings[space.drawn(study.ask(space.distributions).params)] = None
        except InputError as error:
            reason = str(error)
        if len(settings.keys() - {space.fixed}) == count:
            break
    if count and not settings:
        raise InputError(f"search space: none of its values are a setting together ({reason})")
    return [one for one in settings if one != space.fixed]


def cells_of(given: str | Path | Mapping[str, Mapping[str, Any]] | None) -> dict[str, dict[str, Any]]:
    """Cells by name, from a mapping or a YAML file: `cranfield-bm25: {index: …, topics: …, qrels: …, run: …}`.

    Raises:
        InputError: an unreadable file, unknown or missing keys: all of them at once.
    """
    named = isinstance(given, str | Path)
    content: Any = read_yaml(given, "collections") if isinstance(given, str | Path) else given
    shown = str(given) if named else argument("collections")
    if not isinstance(content, Mapping) or not all(isinstance(entry, Mapping) for entry in content.values()):
        raise InputError(f"{shown}: expected `name: {{index: …, topics: …, qrels: …}}` for each cell")
    several = list(content.items())
    refuse(
        *(
            (key not in KEYS, f"{shown}: {name}: unknown key {key}, {nearest(str(key), KEYS)}")
            for name, of in several
            for key in of
        ),
        *((key not in of, f"{shown}: {name}: no {key}") for name, of in several for key in NEEDED),
    )
    return {str(name): dict(entry) for name, entry in content.items()}
