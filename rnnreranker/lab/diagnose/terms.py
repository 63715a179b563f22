"""The terms of the scores of a context, and the influence of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnreranker.lab.diagnose.measures import rank_biased_overlap
from rnnreranker.rnn import RnnParams, mixture
from rnnreranker.runs.head import order_by_score

KNOWN = ("rank", "run", "query")  # the terms that are known without neighbours
NEAR = ("jaccard", "first")  # those of the Jaccard similarity
TOP = 10  # of the order that a term's effect is counted in


def terms(products: np.ndarray, base: np.ndarray, jaccard: np.ndarray, params: RnnParams) -> dict[str, np.ndarray]:
    """What each term adds to the scores of n candidates: name → (n,) float64; they sum to the score.

    Only terms with a weight: `rank`, `run`, `query` (inner product), `jaccard` (J with the query), `first` (J with the
    run's first), `nearest` (mean score of the nearest candidates).

    Args:
        products: (n + 1, n + 1) inner products, query first.
        base: (n,) run scores, in the order of the candidates.
        jaccard: (P, n + 1), from the probes 0 to P - 1 to all elements.
        params: of the scores.
    """
    similarity, count = products[0, 1:], len(products) - 1
    if params.scale == "none":  # eq. 1
        amounts_of = {"query": params.lam * similarity}
    else:
        size = np.array([count + 1])
        wr, ws, wq = (params.lam * weight for weight in mixture.weights(params))
        ranks = mixture.of_ranks(np.arange(1.0, count + 1), np.array(count), params.rank_constant)
        amounts_of = {"rank": wr * ranks, "run": ws * mixture.unit(base[None], size)[0]}
        amounts_of |= {"query": wq * mixture.unit(similarity[None], size)[0]}
    each = (1 - params.lam) / len(jaccard)
    near = jaccard[:, 1:].astype(np.float64)
    near[np.arange(1, len(near)), np.arange(len(near) - 1)] = 1.0  # J(p, p), also without neighbours
    amounts_of |= {"jaccard": each * near[0], "first": each * near[1:].sum(axis=0)}
    if share := params.smoothing if params.smoothed_over else 0.0:
        mixed = sum(amounts_of.values(), start=np.zeros(count))
        amounts_of = {name: (1 - share) * amounts for name, amounts in amounts_of.items()}
        lent = mixture.smooth(mixed[None], products, share, params.smoothing_neighbours)[0]
        amounts_of["nearest"] = lent - (1 - share) * mixed
    weights = weights_of(params, len(jaccard))
    return {name: amounts for name, amounts in amounts_of.items() if weights[name]}


def weights_of(params: RnnParams, probes: int) -> dict[str, float]:
    """The weight of each term in s*, for all probes but the query together; they sum to 1."""
    run = (0.0, 0.0, 1.0) if params.scale == "none" else mixture.weights(params)
    weights = {name: params.lam * weight for name, weight in zip(("rank", "run", "query"), run, strict=True)}
    each = (1 - params.lam) / probes
    weights |= {"jaccard": each, "first": each * (probes - 1)}
    share = params.smoothing if params.smoothed_over else 0.0
    return {name: (1 - share) * weight for name, weight in weights.items()} | {"nearest": share}


def effects(added: dict[str, np.ndarray], docids: np.ndarray) -> dict[str, dict[str, float | None]]:
    """The influence of each term on the order of a context.

    spread: its standard deviation as a share of the sum over terms. top_10: how many of the first ten need it; None
    for ten candidates or fewer. agreement: rank-biased overlap of its own order and the order of the scores; None for
    a constant term.

    Args:
        added: of `terms`.
        docids: (n,) names, which break ties.
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
            "spread": deviations[name] / whole if whole else 0.0,
            "top_10": float(len(set(order[:TOP]) - set(without[:TOP]))) if len(order) > TOP else None,
            "agreement": rank_biased_overlap(alone, order) if deviations[name] else None,
        }
    return effect_of


def mean_effects(several: list[dict[str, dict[str, float | None]]], params: RnnParams) -> dict[str, dict[str, Any]]:
    """Means of `effects` over contexts, with the weight of each term; None without values."""
    names = dict.fromkeys(name for one in several for name in one)
    weights = weights_of(params, 1 if params.scale == "none" else params.probes)
    result: dict[str, dict[str, Any]] = {}
    for name in names:
        result[name] = {"weight": round(weights[name], 4)}
        for what in ("spread", "top_10", "agreement"):
            values = [value for one in several if name in one and (value := one[name][what]) is not None]
            result[name][what] = round(float(np.mean(values)), 4) if values else None
    return result
