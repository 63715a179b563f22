"""Settings chosen on all collections but one and measured on that one: what carries over to data not seen."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.command import progress
from rnnreranker.errors import InputError, nearest, require
from rnnreranker.evaluate.comparison import bootstrap_intervals
from rnnreranker.files import read_yaml
from rnnreranker.rnn import RnnParams
from rnnreranker.tune.objective import Objective
from rnnreranker.tune.space import Space

KEYS = ("index", "topics", "qrels", "run", "protocol", "encoder")
NEEDED = ("index", "topics", "qrels")


@dataclass(frozen=True)
class LeftOut:
    """One collection, measured with what the others would have chosen.

    Attributes:
        name: of the collection.
        topics: T of it.
        base: mean of the run as retrieved.
        default, default_low, default_high: gain of the default over it, with its 95% bootstrap interval.
        chosen, chosen_low, chosen_high: gain of the setting with the best mean gain on the other collections.
        params: that setting.
    """

    name: str
    topics: int
    base: float
    default: float
    default_low: float
    default_high: float
    chosen: float
    chosen_low: float
    chosen_high: float
    params: RnnParams


def leave_one_out(objectives: Mapping[str, Objective], space: Space, settings: int, seed: int = 0) -> list[LeftOut]:
    """For each collection, the gain of the setting that does best on the others, beside that of the default.

    Settings are `settings` - 1 drawn at random from the space, and the default, all measured on every collection. The
    best has the highest mean over the collections of its mean gain over the run as retrieved; among equals the first.

    Raises:
        InputError: fewer than two collections, or settings below 1.
        MissingDependencyError: without optuna, whose distributions draw the settings.
    """
    if len(objectives) < 2:
        raise InputError(f"{len(objectives)} collection: expected at least two to leave one out")
    if settings < 1:
        raise InputError(f"{settings} settings: expected 1 or more")
    drawn = [space.fixed, *draw(space, settings - 1, seed)]
    gains: dict[str, list[np.ndarray]] = {}
    bases = {}
    for name, objective in objectives.items():
        bases[name] = objective.base()
        deepest = objective.contexts.deepest
        fitting = [dataclasses.replace(params, context=min(params.context, deepest)) for params in drawn]
        gains[name] = [
            objective.values(params) - bases[name] for params in progress(fitting, unit="settings", what=name)
        ]
    means = {name: np.array([gain.mean() for gain in found]) for name, found in gains.items()}
    result = []
    for name in objectives:
        others = np.mean([means[other] for other in objectives if other != name], axis=0)
        best = int(others.argmax())
        default, chosen = bootstrap_intervals(np.stack([gains[name][0], gains[name][best]])).tolist()
        result.append(
            LeftOut(
                name=name,
                topics=len(bases[name]),
                base=float(bases[name].mean()),
                default=float(means[name][0]),
                default_low=default[0],
                default_high=default[1],
                chosen=float(means[name][best]),
                chosen_low=chosen[0],
                chosen_high=chosen[1],
                params=drawn[best],
            )
        )
    return result


def draw(space: Space, count: int, seed: int) -> list[RnnParams]:
    """Settings drawn at random, the same for the same seed."""
    optuna = require("optuna", "tuning", "'rnnreranker[tune]'")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    found = []
    for _ in range(count):
        trial = study.ask()
        found.append(space.suggest(trial))
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return found


def read_collections(path: str | Path) -> dict[str, dict[str, Any]]:
    """Query sets by name from a YAML file: `cranfield: {index: …, topics: …, qrels: …, protocol: binary}`.

    Raises:
        InputError: no such file, not YAML, unknown or missing keys: all of them at once.
    """
    content = read_yaml(path, "collections")
    if not isinstance(content, dict) or not all(isinstance(entry, dict) for entry in content.values()):
        raise InputError(f"{path}: expected `name: {{index: …, topics: …, qrels: …}}` for each collection")
    problems = []
    for name, entry in content.items():
        problems += [f"{name}: unknown key {key}, {nearest(str(key), KEYS)}" for key in entry if key not in KEYS]
        problems += [f"{name}: no {key}" for key in NEEDED if key not in entry]
    if problems:
        raise InputError(f"{path}: {'; '.join(problems)}")
    return {str(name): entry for name, entry in content.items()}
