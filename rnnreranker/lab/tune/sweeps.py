"""Sweeps: one or two settings vary, the others stay."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.evaluate.comparison import bootstrap_intervals, differences
from rnnreranker.lab.tune.objective import Objective
from rnnreranker.rnn import RnnParams

Rows = list[dict[str, Any]]
CONTEXTS = (10, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600, 800, 1000)
LAMBDAS = tuple(round(0.05 * step, 2) for step in range(21))
NEIGHBOURS = (3, 5, 7, 10, 15, 21, 30)
FOLDS = 5
WHOLE = "all parts"  # the row that ablations are compared with
ABLATIONS = "ablations"


def sweep(names: Sequence[str], objective: Objective, params: RnnParams) -> dict[str, Rows]:
    """Name → rows of sweeps, with value, low, high (95% bootstrap interval over topics).

    context: milliseconds (processor time a query), as in Figures 3 to 9 of paper 000. lambda: lam, fold_low, fold_high
    (lowest and highest mean of five parts of the topics). grid: context, k. ablations: what, difference from all parts,
    difference_low, difference_high.
    """
    rows = {name: _varied(name, objective, params) for name in names if name != ABLATIONS}
    if ABLATIONS in names:
        variants = {WHOLE: params, **without_parts(params), **without_terms(params)}
        shown = progress(list(variants.items()), unit="variants", what=ABLATIONS)
        rows[ABLATIONS] = compared({what: objective.values(variant) for what, variant in shown})
    return rows


def _varied(name: str, objective: Objective, params: RnnParams) -> Rows:
    sizes = [size for size in CONTEXTS if size < objective.deepest] + [objective.deepest]
    varied: dict[str, Rows] = {
        "context": [{"context": size} for size in sizes],
        "lambda": [{"lam": lam} for lam in LAMBDAS],
        "grid": [{"context": size, "k": k} for size in sizes for k in NEIGHBOURS if k < size],
    }
    rows = []
    for changed in progress(varied[name], unit="settings", what=name):
        begun, variant = time.process_time(), dataclasses.replace(params, **changed)
        run = objective.rerank(variant, objective.topics)
        spent = time.process_time() - begun
        values = objective.of(run, objective.topics)
        row = {**changed, **_summary(values)}
        if name == "context":
            row["milliseconds"] = 1000 * spent / len(values)
        elif name == "lambda":
            parts = [float(values[fold::FOLDS].mean()) for fold in range(min(FOLDS, len(values)))]
            row |= {"fold_low": min(parts), "fold_high": max(parts)}
        rows.append(row)
    return rows


def without_parts(params: RnnParams) -> dict[str, RnnParams]:
    """Name → the settings with one part of the similarity left out or changed."""
    changes: dict[str, dict[str, Any]] = {
        "weights all equal": {"weight": "binary"},
        "no extension (tau 0)": {"tau": 0.0},
        "no expansion (k_exp 1)": {"k_exp": 1},
        "Jaccard alone (lambda 0)": {"lam": 0.0},
        "no Jaccard (lambda 1)": {"lam": 1.0},
        "raw scale": {"scale": "none"},
        "printed variant": {"variant": "paper"},
    }
    return {what: dataclasses.replace(params, **changed) for what, changed in changes.items()}


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
    """Rows of ablations from name → (T,) values; `WHOLE` is one of the names."""
    gaps = differences(values, [(what, WHOLE) for what in values])
    return [
        {"what": what, **_summary(own), "difference": gap["difference"]}
        | {"difference_low": gap["low"], "difference_high": gap["high"]}
        for (what, own), gap in zip(values.items(), gaps, strict=True)
    ]


def _summary(values: np.ndarray) -> dict[str, float]:
    low, high = bootstrap_intervals(values[None])[0]
    return {"value": float(values.mean()), "low": float(low), "high": float(high)}
