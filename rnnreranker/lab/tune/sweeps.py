"""Sweeps: one or two settings vary, the others stay; and their figures."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.pages import new_axes, save_figure
from rnnreranker.evaluate.comparison import bootstrap_intervals, differences
from rnnreranker.lab.tune.space import Space
from rnnreranker.lab.tune.trials import Rows
from rnnreranker.rnn import RnnParams

CONTEXTS = (10, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600, 800, 1000)
LAMBDAS = tuple(round(0.05 * step, 2) for step in range(21))
NEIGHBOURS = (3, 5, 7, 10, 15, 21, 30)
WHOLE = "all parts"  # the row that ablations are compared with
# What is left out of similarity and labels, or changed.
PARTS = """
weights all equal: {weight: binary}
no extension (tau 0): {tau: 0.0}
no expansion (k_exp 1): {k_exp: 1}
Jaccard alone (lambda 0): {lam: 0.0}
no Jaccard (lambda 1): {lam: 1.0}
raw scale: {scale: none}
printed variant: {variant: paper}
no rank: {rank_weight: 0.0}
no run scores: {run_weight: 0.0}
no inner products: {query_weight: 0.0}
the query the only probe: {probes: 1}
no smoothing: {smoothing: 0.0}
no n_max: {n_max: null}
no boost (b 1): {boost: 1.0}
"""
INCHES = (6.4, 4.0)
LABELS = {"context": "context N", "lam": "lambda (0 = Jaccard alone, 1 = no Jaccard)", "what": ""}
ENDS = (("value", "low", "high"), ("difference", "difference_low", "difference_high"))  # of a sweep, of ablations


def sweep(names: Sequence[str], objective: Any, params: RnnParams) -> dict[str, Rows]:
    """Name → rows of sweeps of an `Objective`, with value, low, high (95% bootstrap interval over topics).

    context: milliseconds (processor time a query), as in Figures 3 to 9 of paper 000. lambda: lam. grid: context, k.
    ablations: what, difference from all parts, difference_low, difference_high.
    """
    sizes = [size for size in CONTEXTS if size < objective.deepest] + [objective.deepest]
    changes: dict[str, list[dict[str, Any]]] = {
        "context": [{"context": size} for size in sizes],
        "lambda": [{"lam": lam} for lam in LAMBDAS],
        "grid": [{"context": size, "k": k} for size in sizes for k in NEIGHBOURS if k < size],
    }
    made: dict[str, Rows] = {}
    for name in names:
        if name == "ablations":
            made[name] = ablations(objective.values, params)
            continue
        made[name] = []
        for changed in progress(changes[name], unit="settings", what=name):
            begun = time.process_time()
            run = objective.rerank(dataclasses.replace(params, **changed), objective.topics)
            spent = 1000 * (time.process_time() - begun) / len(objective.topics)
            row = {**changed, **_summary(objective.of(run, objective.topics))}
            made[name].append(row | ({"milliseconds": spent} if name == "context" else {}))
    return made


def ablations(values: Callable[[Any], np.ndarray], params: Any) -> Rows:
    """What is lost without each part of the settings that can be left out; values: settings → (T,) float64."""
    variants = {WHOLE: params}
    for what, changed in yaml.safe_load(PARTS).items():
        with contextlib.suppress(InputError):  # a mixture keeps its only term
            if (variant := Space({}, params).drawn(changed)) != params:
                variants[what] = variant
    measured = {what: values(one) for what, one in progress(variants.items(), unit="variants", what="ablations")}
    gaps = differences(measured, [(what, WHOLE) for what in measured])
    return [
        {"what": what, **_summary(own), "difference": gap["difference"]}
        | {f"difference_{end}": gap[end] for end in ("low", "high")}
        for (what, own), gap in zip(measured.items(), gaps, strict=True)
    ]


def _summary(values: np.ndarray) -> dict[str, float]:
    low, high = bootstrap_intervals(values[None])[0]
    return {"value": float(values.mean()), "low": float(low), "high": float(high)}


def write_plots(folder: str | Path, sweeps: Mapping[str, Rows], measure: str) -> list[Path]:
    """Draw each sweep into a folder; returns the files.

    Raises:
        InputError: the folder is not writable; MissingDependencyError: matplotlib is missing.
    """
    require("matplotlib", "plots", "'rnnreranker[plots]'")
    import pandas

    Path(folder).mkdir(parents=True, exist_ok=True)
    written = []
    for name, rows in sweeps.items():
        table, (figure, axes) = pandas.DataFrame(rows), new_axes(*INCHES)
        first = table.columns[0]
        axes.set(xlabel=LABELS.get(first, first), ylabel=measure)
        if name == "grid":
            values = table.pivot(index=first, columns="k", values="value")
            axes.plot(values.index, values, marker=".", label=[f"k {k}" for k in values])
            axes.legend(frameon=False)
        else:
            middle, low, high = (table[end] for end in ENDS[name == "ablations"])
            axes.errorbar(table[first], middle, yerr=[middle - low, high - middle], marker=".", capsize=2)
            axes.tick_params(axis="x", rotation=90 if name == "ablations" else 0)
        written.append(save_figure(figure, Path(folder) / f"{name}.svg"))
    return written
