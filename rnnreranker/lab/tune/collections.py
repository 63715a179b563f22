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
from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.files import read_yaml
from rnnreranker.evaluate.comparison import differences
from rnnreranker.lab.tune.request import NEEDED, TuneRequest, check
from rnnreranker.lab.tune.reranking import Objective
from rnnreranker.lab.tune.space import Space
from rnnreranker.lab.tune.trials import search
from rnnreranker.rnn import RnnParams

KEYS = (*NEEDED, "run", "protocol", "encoder", "collection")  # of a cell
DIGITS = 6  # of gains on record
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

    objectives, collections, once = dict[str, Objective](), dict[str, str](), functools.cache(open_index)
    for name, cell in cells_of(request.collections).items():
        collections[name] = str(cell.pop("collection", name))
        objectives[name] = Objective(dataclasses.replace(request, **cell), once(cell["index"]))
    kept: Any = {"rule": request.rule or "capped", "storage": request.storage}
    made = leave_one_out(objectives, request.searched, request.trials, request.seed, collections=collections, **kept)
    return made, {name: objective.fingerprint for name, objective in objectives.items()}


def leave_one_out(
    objectives: Mapping[str, Objective],
    space: Space,
    settings: int,
    seed: int = 0,
    *,
    collections: Mapping[str, str],
    rule: str = "capped",
    storage: str | Path | None = None,
) -> dict[str, Any]:
    """For each collection the gain of the setting that the others choose, and the gain of the default.

    Settings are the default and random ones, or all of a smaller space; of equal ones the first wins.

    Args:
        objectives: cell → objective; collections: cell → collection.
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

    if (count := len({*collections.values()})) < 2:
        raise InputError(f"{command.counted(count, 'collection')}: expected two or more to leave one out")
    if not space.firsts(0):
        raise InputError("search space: the default is not in it; widen the space, or give another --rerank")
    kept: Any = {"seed": seed, "storage": storage, "random_trials": settings}
    gains = {}
    for name, objective in objectives.items():
        base, about = objective.values(None), objective.about(objective.topics)

        def gain(params: RnnParams, objective: Objective = objective, base: np.ndarray = base) -> float:
            return float((objective.values(params) - base).mean())

        searched = search(gain, space, settings, name=f"cell {name}", about=about, **kept)
        drawn = [one for one in searched.tried if one is not None]
        gains[name] = [one for one in searched.history if one is not None]
    table, cells = pandas.DataFrame(gains), list[dict[str, Any]]()
    for name, objective in objectives.items():
        others = [other for other in objectives if collections[other] != collections[name]]
        best = int(RULES[rule](table[others].to_numpy()).argmax())
        values = objective.compared(drawn[best], space.fixed)
        cell: Any = {"name": name, "collection": collections[name], "topics": len(objective.topics)}
        cell["base"] = float(values["base"].mean())
        for what, of in (("default", "default"), ("chosen", "tuned")):
            [gap] = differences(values, [(of, "base")])
            cell |= {what: gap["difference"], f"{what}_low": gap["low"], f"{what}_high": gap["high"]}
        cells.append(cell | {"setting": best})
    worth, first = {name: weigh(table.to_numpy()) for name, weigh in RULES.items()}, space.fixed.to_dict()
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


def cells_of(given: str | Path | Mapping[str, Mapping[str, Any]] | None) -> dict[str, dict[str, Any]]:
    """Cells by name, from a mapping or a YAML file: `cranfield-bm25: {index: …, topics: …, qrels: …, run: …}`.

    Raises:
        InputError: an unreadable file, unknown or missing keys.
    """
    named = isinstance(given, str | Path)
    content: Any = read_yaml(given, "collections") if isinstance(given, str | Path) else given
    shown = str(given) if named else argument("collections")
    expected = f"expected `name: {{index: …, topics: …, qrels: …}}` for each cell, and perhaps {', '.join(KEYS[3:])}"
    if not isinstance(content, Mapping):
        raise InputError(f"{shown}: {expected}")
    for name, cell in content.items():
        if not (isinstance(cell, Mapping) and {*NEEDED} <= {*cell} <= {*KEYS}):
            raise InputError(f"{shown}: {name}: {expected}")
    return {str(name): dict(cell) for name, cell in content.items()}
