"""The terms of the scores of a context, and the influence of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnreranker.lab.diagnose.measures import rank_biased_overlap, rounded
from rnnreranker.rnn import RnnParams, reference
from rnnreranker.runs.head import order_by_score

KNOWN = ("rank", "run", "query")  # the terms that are known without neighbours
NEAR = ("jaccard", "first")  # those of the Jaccard similarity
TOP = 10  # of the order that a term's effect is counted in


def terms(made: reference.Parts, params: RnnParams) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """What each term adds to the scores of n candidates, (n,) float64 by name, and its weight; both by name.

    Amounts sum to the score, weights to 1. Only terms with a weight: `rank`, `run`, `query` (inner product), `jaccard`
    (J with the query), `first` (J with the run's first), `nearest` (mean score of the nearest candidates).
    """
    share, probes = params.smoothing if params.smoothed_over else 0.0, len(made.jaccard)
    known = ("query",) if len(made.terms) == 1 else KNOWN  # eq. 1 has no others
    weights = {name: params.lam * float(weight) for name, weight in zip(known, made.weights, strict=True)}
    weights |= {"jaccard": (1 - params.lam) / probes, "first": (1 - params.lam) * (probes - 1) / probes}
    weights = {name: (1 - share) * weight for name, weight in weights.items()} | {"nearest": share}
    values = dict(zip(known, made.terms, strict=True)) | {"jaccard": made.jaccard[0], "nearest": made.lent}
    values["first"] = made.jaccard[1:].sum(axis=0) / max(probes - 1, 1)
    return {name: weight * values[name] for name, weight in weights.items() if weight}, weights


def effects(
    added: dict[str, np.ndarray], weights: dict[str, float], docids: np.ndarray
) -> dict[str, dict[str, float | None]]:
    """The weight of each term and its influence on the order of a context.

    spread: its standard deviation as a share of the sum over terms. top_10: how many of the first ten need it.
    agreement: rank-biased overlap of its own order and the order of the scores. None where undefined.

    added, weights: of `terms`; docids: (n,) names, which break ties.
    """
    scores = sum(added.values(), start=np.zeros(len(docids)))
    order = docids[order_by_score(scores, docids)].tolist()
    deviations = {name: float(amounts.std()) for name, amounts in added.items()}
    whole = sum(deviations.values())
    effect_of: dict[str, dict[str, float | None]] = {}
    for name, amounts in added.items():
        without = docids[order_by_score(scores - amounts, docids)].tolist()
        alone = docids[order_by_score(amounts, docids)].tolist()
        effect_of[name] = {
            "weight": weights[name],
            "spread": deviations[name] / whole if whole else 0.0,
            "top_10": float(len(set(order[:TOP]) - set(without[:TOP]))) if len(order) > TOP else None,
            "agreement": rank_biased_overlap(alone, order) if deviations[name] else None,
        }
    return effect_of


def mean_effects(several: list[dict[str, dict[str, float | None]]]) -> dict[str, dict[str, Any]]:
    """Means of `effects` over contexts; None without values."""
    means: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(name for one in several for name in one):
        for what in ("weight", "spread", "top_10", "agreement"):
            values = [value for one in several if name in one and (value := one[name][what]) is not None]
            means.setdefault(name, {})[what] = rounded(np.mean(values)) if values else None
    return means
