"""Sweeps: one or two settings vary, the others stay."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.evaluate.comparison import bootstrap_intervals, differences
from rnnreranker.lab.tune.objective import Objective
from rnnreranker.rnn import RnnParams

Rows = list[dict[str, Any]]
CONTEXTS = (10, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600, 800, 1000)
LAMBDAS = tuple(round(0.05 * step, 2) for step in range(21))
NEIGHBOURS = (3, 5, 7, 10, 15, 21, 30)
FOLDS = 5
WHOLE = "all parts"  # the row that ablations are compared with


def context_sweep(objective: Objective, params: RnnParams) -> Rows:
    """Measure and processor time by the context N, as in Figures 3 to 9 of paper 000.

    Rows: context, value, low, high (95% bootstrap interval), milliseconds (processor time a query).
    """
    rows = []
    for size in progress(_sizes(objective), unit="contexts", what="context"):
        cut = dataclasses.replace(params, context=size)
        spent = min(_seconds(objective, cut) for _ in range(3))
        milliseconds = 1000 * spent / len(objective.contexts.run)
        rows.append({"context": size, **_summary(objective.values(cut)), "milliseconds": milliseconds})
    return rows


def lambda_sweep(objective: Objective, params: RnnParams) -> Rows:
    """The measure by lambda.

    Rows: lam, value, low, high, fold_low, fold_high (lowest and highest mean of five parts of the topics).
    """
    rows = []
    for lam in progress(LAMBDAS, unit="values", what="lambda"):
        values = objective.values(dataclasses.replace(params, lam=lam))
        parts = [values[fold::FOLDS].mean() for fold in range(min(FOLDS, len(values)))]
        rows.append({"lam": lam, **_summary(values), "fold_low": float(min(parts)), "fold_high": float(max(parts))})
    return rows


def grid_sweep(objective: Objective, params: RnnParams) -> Rows:
    """The measure by context N and neighbours k. Rows: context, k, value, low, high."""
    pairs = [(size, k) for size in _sizes(objective) for k in NEIGHBOURS if k < size]
    rows = []
    for size, k in progress(pairs, unit="pairs", what="context and k"):
        values = objective.values(dataclasses.replace(params, context=size, k=k))
        rows.append({"context": size, "k": k, **_summary(values)})
    return rows


def ablation_sweep(objective: Objective, params: RnnParams) -> Rows:
    """Each part left out in turn. Rows: what, value, low, high, difference from all parts, difference_low,
    difference_high."""
    variants = {WHOLE: params, **without_parts(params), **without_terms(params)}
    shown = progress(list(variants.items()), unit="variants", what="ablations")
    return compared({what: objective.values(variant) for what, variant in shown})


def without_parts(params: RnnParams) -> dict[str, RnnParams]:
    """Name → the settings with one part of the similarity left out or changed."""
    return {
        "weights all equal": dataclasses.replace(params, weight="binary"),
        "no extension (tau 0)": dataclasses.replace(params, tau=0.0),
        "no expansion (k_exp 1)": dataclasses.replace(params, k_exp=1),
        "Jaccard alone (lambda 0)": dataclasses.replace(params, lam=0.0),
        "no Jaccard (lambda 1)": dataclasses.replace(params, lam=1.0),
        "raw scale": dataclasses.replace(params, scale="none"),
        "printed variant": dataclasses.replace(params, variant="paper"),
    }


def without_terms(params: RnnParams) -> dict[str, RnnParams]:
    """Name → the settings with one term of the first stage or the query left out.

    Eq. 1 (scale "none") has no such terms; a mixture keeps its only term.
    """
    if params.scale == "none":
        return {}
    names = {"no rank": "rank_weight", "no run scores": "run_weight", "no inner products": "query_weight"}
    present = {what: name for what, name in names.items() if getattr(params, name)}
    changes: dict[str, dict[str, Any]] = {what: {name: 0.0} for what, name in present.items() if len(present) > 1}
    if params.probes > 1:
        changes["the query the only probe"] = {"probes": 1}
    if params.smoothed_over:
        changes["no smoothing"] = {"smoothing": 0.0}
    return {what: dataclasses.replace(params, **changed) for what, changed in changes.items()}


def compared(values: dict[str, np.ndarray]) -> Rows:
    """Rows of `ablation_sweep` from name → (T,) values; `WHOLE` is one of the names."""
    gaps = differences(values, [(what, WHOLE) for what in values])
    return [
        {"what": what, **_summary(own), "difference": gap["difference"]}
        | {"difference_low": gap["low"], "difference_high": gap["high"]}
        for (what, own), gap in zip(values.items(), gaps, strict=True)
    ]


SWEEPS: dict[str, Callable[[Objective, RnnParams], Rows]] = {
    "context": context_sweep,
    "lambda": lambda_sweep,
    "grid": grid_sweep,
    "ablations": ablation_sweep,
}


def sweep(names: Iterable[str], objective: Objective, params: RnnParams) -> dict[str, Rows]:
    """Name → rows of some sweeps.

    Raises:
        InputError: an unknown sweep.
    """
    names = list(names)
    if unknown := [name for name in names if name not in SWEEPS]:
        raise InputError(f"sweep {unknown[0]!r}: {nearest(unknown[0], SWEEPS)}")
    return {name: SWEEPS[name](objective, params) for name in names}


def _seconds(objective: Objective, params: RnnParams) -> float:
    started = time.process_time()
    objective.contexts.rerank(params)
    return time.process_time() - started


def _sizes(objective: Objective) -> list[int]:
    deepest = objective.contexts.deepest
    return [size for size in CONTEXTS if size < deepest] + [deepest]


def _summary(values: np.ndarray) -> dict[str, float]:
    low, high = bootstrap_intervals(values[None])[0]
    return {"value": float(values.mean()), "low": float(low), "high": float(high)}
