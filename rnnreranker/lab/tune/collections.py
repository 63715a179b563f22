"""`leave_one_out`: choose settings on all collections but one, measure them on that one.

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
from rnnreranker.evaluate.comparison import differences
from rnnreranker.lab.tune.request import NEEDED, TuneRequest, check, content_of
from rnnreranker.lab.tune.reranking import Objective
from rnnreranker.lab.tune.trials import search
from rnnreranker.rnn import RnnParams

KEYS = (*NEEDED, "run", "encoded_queries", "hits", "protocol", "encoder", "collection")  # of a cell
DIGITS = 6  # of gains on record
CAP = 0.02  # of the measure: what a cell gains beyond this counts no more
LOSS = 3.0  # a loss counts this many times as much as a gain of the same size


def capped_gain(gains: np.ndarray) -> np.ndarray:
    """(S,) float64: mean over the cells of (S, C) gains; a gain counts at most `CAP`, a loss `LOSS` times.

    >>> capped_gain(np.array([[0.09, -0.03], [0.02, 0.01]])).round(4).tolist()
    [-0.035, 0.015]
    """
    return np.where(gains < 0, LOSS * gains, np.minimum(gains, CAP)).mean(axis=-1)


CAPPED = "capped"  # the rule that chooses
RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {CAPPED: capped_gain, "mean": lambda gains: gains.mean(axis=-1)}


def leave_one_out(request: TuneRequest) -> tuple[dict[str, Any], dict[str, str]]:
    """For each collection the gain of the setting that the others choose, and the gain of the default.

    Settings are the default and random ones, or all of a smaller space; of equal ones the first wins. A storage keeps
    gains and resumes after a kill.

    Returns:
        Plain values for JSON: settings (S), rule; place of the default by the rule over all cells, 1 = best; best: rule
        → number of its setting; default; tried: (S,) what differs from it; gains: cell → (S,) mean gains over the first
        stage; cells: name, collection, topics, base (mean of the first stage), default and chosen (gains, with the
        ends of their 95% bootstrap intervals), setting (number of the chosen one; 0 is the default).
        Cell → fingerprint of its candidates.

    Raises:
        InputError, UnavailableError, MissingDependencyError: as `tune_reranker`; fewer than two collections.
    """
    import pandas

    from rnnreranker.index.opening import open_index

    check(request)
    objectives, collections, gains = dict[str, Objective](), dict[str, str](), dict[str, Any]()
    space, once = request.searched, functools.cache(open_index)
    for name, cell in cells_of(request.collections).items():
        collections[name] = str(cell.pop("collection", name))
        objectives[name] = Objective.read(dataclasses.replace(request, **cell), once(cell["index"]))
    if (count := len({*collections.values()})) < 2:
        raise InputError(f"{command.counted(count, 'collection')}: expected two or more to leave one out")
    if not space.firsts(0):
        raise InputError("search space: the default is not in it; widen the space, or give another --rerank")
    kept: Any = {"seed": request.seed, "storage": request.storage, "random_trials": request.trials}
    for name, objective in objectives.items():
        base = objective.values(None)

        def gain(params: RnnParams, objective: Objective = objective, base: np.ndarray = base) -> float:
            return float((objective.values(params) - base).mean())

        searched = search(gain, space, request.trials, name=f"cell {name}", about=objective.about, **kept)
        gains[name] = dict(zip(searched.tried, searched.history, strict=True))
    table, cells = pandas.DataFrame(gains).dropna(), list[dict[str, Any]]()  # what every cell could compute
    drawn = [*table.index]
    if space.fixed not in drawn:
        raise InputError(f"the default cannot be computed in every cell; give another {argument('rerank')}")
    for name, objective in objectives.items():
        others = [other for other in objectives if collections[other] != collections[name]]
        best = int(RULES[CAPPED](table[others].to_numpy()).argmax())
        values = objective.compared(drawn[best], space.fixed)
        cell = {"name": name, "collection": collections[name], "topics": len(objective.run), "setting": best}
        cell["base"] = float(values["base"].mean())
        for what, of in (("default", "default"), ("chosen", "tuned")):
            [gap] = differences(values, [(of, "base")])
            cell |= {what: gap["difference"], f"{what}_low": gap["low"], f"{what}_high": gap["high"]}
        cells.append(cell)
    worth, first = {name: weigh(table.to_numpy()) for name, weigh in RULES.items()}, space.fixed.to_dict()
    made = {
        "settings": len(drawn),
        "rule": CAPPED,
        "place": 1 + int((worth[CAPPED] > worth[CAPPED][0]).sum()),
        "best": {name: int(values.argmax()) for name, values in worth.items()},
        "default": first,
        "tried": [{key: v for key, v in one.to_dict().items() if v != first[key]} for one in drawn],
        "gains": table.round(DIGITS).to_dict("list"),
        "cells": cells,
    }
    return made, {name: objective.fingerprint for name, objective in objectives.items()}


def cells_of(given: str | Path | Mapping[str, Mapping[str, Any]] | None) -> dict[str, dict[str, Any]]:
    """Cells by name, from a mapping or a YAML file: `cranfield-bm25: {index: …, topics: …, qrels: …, run: …}`.

    Raises:
        InputError: an unreadable file, unknown or missing keys.
    """
    content, shown = content_of(given, "collections", "collections")
    expected = f"expected `name: {{index: …, topics: …, qrels: …}}` for each cell, and perhaps {', '.join(KEYS[3:])}"
    if not isinstance(content, Mapping):
        raise InputError(f"{shown}: {expected}")
    for name, cell in content.items():
        if not (isinstance(cell, Mapping) and {*NEEDED} <= {*cell} <= {*KEYS}):
            raise InputError(f"{shown}: {name}: {expected}")
    return {str(name): dict(cell) for name, cell in content.items()}
