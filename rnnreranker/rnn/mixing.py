"""What the first stage and the inner products say of candidates, and its mixture with Jaccard similarities.

The engines give Jaccard similarities and inner products; here s* is made of them, for a chunk of contexts at once.
Values of a context are computed elementwise or from that context alone, so they do not depend on the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.rnn.engine_setting import EngineSetting
from rnnreranker.rnn.params import RnnParams

if TYPE_CHECKING:
    from rnnreranker.rnn.chunks import Engine


def similarities(
    run: Engine,
    gram: np.ndarray,
    sizes: np.ndarray,
    base: np.ndarray | None,
    params: RnnParams,
    setting: EngineSetting,
    problem: np.ndarray,
) -> np.ndarray:
    """s* of the candidates of a chunk of contexts, (C, N) float64; anything at padding.

    gram, sizes, problem: as an engine takes them, N + 1 the largest size; base: (C, N) float, finite, or None.
    """
    widest, first = int(sizes.max()), None
    probes = np.zeros((len(sizes), 1), dtype=np.int64)
    if setting.minmax:
        first = of_products(_products(gram, sizes), sizes, params) if base is None else of_run(base, sizes, params)
        probes = first.order
    jaccard = np.zeros((len(sizes), probes.shape[1], widest))
    run(gram, sizes, setting, probes, jaccard, problem)
    return mixed(first, _products(gram, sizes), jaccard, sizes, params)


def _products(gram: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(C, N) float32: the query's row of every matrix without its first entry; 0 at padding."""
    widest = int(sizes.max())
    row = gram[:, 1:widest]
    return row if (sizes == widest).all() else np.where(np.arange(1, widest) < sizes[:, None], row, np.float32(0))


@dataclass(frozen=True, eq=False)
class FirstStage:
    """What a first stage knows of the candidates of C contexts.

    order: (C, P) int64, the elements that are probes, the query (0) first; of a context with fewer elements the rest
    are -1. terms: (C, N) float64, the weighted sum of the terms of rank and score; what stands at padding is finite.
    """

    order: np.ndarray
    terms: np.ndarray


def of_run(base: np.ndarray, sizes: np.ndarray, params: RnnParams) -> FirstStage:
    """The first stage of a run.

    base: (C, N) float, its scores, finite, the candidates in its order; sizes: (C,) elements of a context, n + 1.
    """
    width = base.shape[1]
    ranks = np.broadcast_to(np.arange(1.0, width + 1), base.shape)
    probes = np.arange(min(params.probes, width + 1))
    order = np.where(probes < sizes[:, None], probes, -1)
    return FirstStage(order, _terms(ranks, base, sizes, params))


def of_products(products: np.ndarray, sizes: np.ndarray, params: RnnParams) -> FirstStage:
    """The first stage that ranks by inner products, descending, of equal ones the earlier column first.

    products: (C, N); sizes as in `of_run`.
    """
    width = products.shape[1]
    real = np.arange(1, width + 1) < sizes[:, None]
    order = np.argsort(np.where(real, -products, np.inf), axis=1, kind="stable")
    ranks = np.empty(products.shape)
    np.put_along_axis(ranks, order, np.arange(1.0, width + 1)[None], axis=1)
    first = np.zeros((len(products), min(params.probes, width + 1)), dtype=np.int64)
    first[:, 1:] = order[:, : first.shape[1] - 1] + 1
    first[np.arange(first.shape[1]) >= sizes[:, None]] = -1
    return FirstStage(first, _terms(ranks, products, sizes, params))


def _terms(ranks: np.ndarray, scores: np.ndarray, sizes: np.ndarray, params: RnnParams) -> np.ndarray:
    wr, ws, _ = weights(params)
    found = wr * of_ranks(ranks, sizes[:, None] - 1, params.rank_constant) if wr else np.zeros(scores.shape)
    if ws:
        found += ws * unit(scores, sizes)
    return found


def weights(params: RnnParams) -> tuple[float, float, float]:
    """The weights of rank, score and inner product, divided by their sum."""
    largest = max(params.rank_weight, params.run_weight, params.query_weight)
    shares = [weight / largest for weight in (params.rank_weight, params.run_weight, params.query_weight)]
    wr, ws, wq = (share / sum(shares) for share in shares)
    return wr, ws, wq


def of_ranks(ranks: np.ndarray, counts: np.ndarray, constant: float) -> np.ndarray:
    """1 / (constant + rank), mapped so that rank 1 has 1 and the last, `counts`, 0; 0 where there is one rank.

    In closed form, which no constant makes imprecise: (n - r) / (n - 1) * (c + 1) / (c + r).
    """
    found: np.ndarray = (counts - ranks) / np.maximum(counts - 1, 1) * ((constant + 1.0) / (constant + ranks))
    return found


def unit(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(C, N) float64: each row mapped so that its lowest value is 0 and its highest 1; a constant row is 0.

    values: (C, N) float, finite; the first sizes - 1 of a row count, what stands behind them is finite.
    """
    halves = 0.5 * np.asarray(values, dtype=np.float64)  # their differences are finite
    if (sizes > values.shape[1]).all():
        low, high = halves.min(axis=1, keepdims=True), halves.max(axis=1, keepdims=True)
    else:
        real = np.arange(1, values.shape[1] + 1) < sizes[:, None]
        halves = np.where(real, halves, 0.0)
        low = np.where(real, halves, np.inf).min(axis=1, keepdims=True)
        high = np.where(real, halves, -np.inf).max(axis=1, keepdims=True)
        low, high = np.where(sizes[:, None] > 1, low, 0.0), np.where(sizes[:, None] > 1, high, 0.0)
    span = high - low
    halves -= low
    halves /= np.where(span > 0, span, 1.0)
    return halves


def mixed(
    first: FirstStage | None, products: np.ndarray, jaccard: np.ndarray, sizes: np.ndarray, params: RnnParams
) -> np.ndarray:
    """s* of the candidates of C contexts, (C, N) float64; anything at padding.

    first: None with scale "none", which takes products as they are. products: (C, N), of the query and the candidates.
    jaccard: (C, P, N + 1), of the probes `first.order` to every element; rows of probes that are -1 are not read.
    """
    if first is None:
        return params.lam * products.astype(np.float64) + (1.0 - params.lam) * jaccard[:, 0, 1:]
    known = first.terms
    if wq := weights(params)[2]:
        known = known + wq * unit(products, sizes)
    near, asked = jaccard[:, 0, 1:], first.order >= 0
    if jaccard.shape[1] > 1:
        near, rows = near.copy(), np.arange(len(near))
        for place in range(1, jaccard.shape[1]):
            values = np.where(asked[:, place, None], jaccard[:, place, 1:], 0.0)
            there = rows[asked[:, place]]
            values[there, first.order[there, place] - 1] = 1.0  # itself, also where it has no neighbours
            near += values
        near /= asked.sum(axis=1, keepdims=True)
    return params.lam * known + (1.0 - params.lam) * near
