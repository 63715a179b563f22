"""What the first stage and the inner products say of candidates, and its mixture with Jaccard similarities.

The engines give Jaccard similarities and inner products; here s* is made of them, for a chunk of contexts at once.
Values of a context are computed elementwise or from that context alone, so they do not depend on the others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.rnn.engines.setting import EngineSetting
from rnnreranker.rnn.params import RnnParams
from rnnreranker.rnn.smoothing import Closest

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
    """s* of the candidates of a chunk of contexts, or s** where `params` smooths, (C, N) float64; anything at padding.

    gram, sizes, problem: as an engine takes them, N + 1 the largest size; base: (C, N) float, finite, or None.
    """
    count, widest = len(sizes), int(sizes.max())

    def jaccard(probes: np.ndarray, closest: Closest | None = None) -> np.ndarray:
        jaccards = np.zeros((count, probes.shape[1], widest))
        run(gram, sizes, setting, probes, jaccards, problem, closest)
        return jaccards

    if not setting.minmax:  # the engine leaves the products as lists are sorted by them
        near = jaccard(np.zeros((count, 1), dtype=np.int64))
        return eq1(gram[:, 1:widest].astype(np.float64), near, params)
    return mixture(gram[:, 1:widest].astype(np.float64), sizes, base, params, jaccard)


def eq1(products: np.ndarray, jaccard: np.ndarray, params: RnnParams) -> np.ndarray:
    """(C, N) float64: lambda s_0i + (1 - lambda) J(0, i); products: (C, N) float64, jaccard: (C, 1, N + 1)."""
    mixed: np.ndarray = params.lam * products + (1.0 - params.lam) * jaccard[:, 0, 1:]
    return mixed


def mixture(
    products: np.ndarray | None,
    sizes: np.ndarray,
    base: np.ndarray | None,
    params: RnnParams,
    jaccard: Callable[[np.ndarray, Closest], np.ndarray],
) -> np.ndarray:
    """s* of scale "minmax", smoothed where `params` says so, (C, N) float64; anything at padding.

    products: (C, N) float64 inner products with the query, None where they have no weight and base is given; base:
    (C, N) or None. jaccard: from probes (C, P), -1 where a context has no more, to their similarities (C, P, N + 1); it
    also fills the closest candidates, see `chunks.Engine`.
    """
    count, widest = len(sizes), int(sizes.max())
    counts = None if int(sizes.min()) == widest else sizes[:, None] - 1  # of candidates; None = N everywhere
    order = None
    if base is None and (params.probes > 1 or params.rank_weight > 0):
        assert products is not None
        order = by_products(products, counts)
    probes = np.empty((count, min(params.probes, widest)), dtype=np.int64)
    probes[:] = np.arange(probes.shape[1])
    if order is not None:
        probes[:, 1:] = order[:, : probes.shape[1] - 1] + 1
    if counts is not None:
        probes[np.arange(probes.shape[1]) > counts] = -1
    closest = Closest.of(min(params.smoothed_over, max(widest - 2, 0)), count, widest)
    near = mean_over(probes, jaccard(probes, closest), counts)
    mixed = params.lam * known(products, base, order, counts, params) + (1.0 - params.lam) * near
    return closest.smooth(mixed, closest.bits, params.smoothing) if closest.count else mixed


def by_products(products: np.ndarray, counts: np.ndarray | None) -> np.ndarray:
    """(C, N) int64: columns by descending inner product, of equal ones the earlier first, padding last."""
    falling = -products
    if counts is not None:
        falling[np.arange(products.shape[1]) >= counts] = np.inf
    return np.argsort(falling, axis=1, kind="stable")


def known(
    products: np.ndarray | None,
    base: np.ndarray | None,
    order: np.ndarray | None,
    counts: np.ndarray | None,
    params: RnnParams,
) -> np.ndarray:
    """(C, N) float64: the weighted mean of the terms of rank, score and inner product; anything at padding.

    products: (C, N) float64, or None where they have no weight; base: (C, N), scores of a run, whose order the columns
    have; None = the inner products, and `order` is theirs where it counts. counts: (C, 1) candidates of a context, the
    first of its row; None = N.
    """
    wr, ws, wq = weights(params)
    scores = products if base is None else base
    assert scores is not None
    of_products = None if products is None else unit(products, counts)
    terms: list[np.ndarray] = []
    if wr:
        ranks = np.arange(1.0, scores.shape[1] + 1)
        falling = of_ranks(ranks, scores.shape[1] if counts is None else counts, params.rank_constant)
        if order is not None:
            placed = np.empty(scores.shape)
            placed[np.arange(len(order))[:, None], order] = falling
            falling = placed
        terms.append(wr * falling)
    if ws:
        of_run = of_products if base is None else unit(base, counts)
        assert of_run is not None
        terms.append(ws * of_run)
    if wq:
        assert of_products is not None
        terms.append(wq * of_products)
    return functools.reduce(np.add, terms)


def mean_over(probes: np.ndarray, jaccard: np.ndarray, counts: np.ndarray | None) -> np.ndarray:
    """(C, N) float64: the mean over the probes of their similarities to the candidates, J(p, p) = 1.

    probes: (C, P) elements, -1 where a context has no more; jaccard: (C, P, N + 1), 0 where a probe is -1, changed.
    """
    rows = np.arange(len(probes))
    near = jaccard[:, 0, 1:]
    for nth in range(1, probes.shape[1]):
        probe, own = probes[:, nth], jaccard[:, nth]
        own[rows, probe] = 1.0 if counts is None else np.where(probe > 0, 1.0, 0.0)  # also of one without neighbours
        near = near + own[:, 1:]
    return near / (probes.shape[1] if counts is None else np.minimum(counts + 1, probes.shape[1]))


def weights(params: RnnParams) -> tuple[float, float, float]:
    """The weights of rank, score and inner product, divided by their sum."""
    largest = max(params.rank_weight, params.run_weight, params.query_weight)
    shares = [weight / largest for weight in (params.rank_weight, params.run_weight, params.query_weight)]
    wr, ws, wq = (share / sum(shares) for share in shares)
    return wr, ws, wq


def of_ranks(ranks: np.ndarray, counts: np.ndarray | int, constant: float) -> np.ndarray:
    """1 / (constant + rank), mapped so that rank 1 has 1 and the last, `counts`, 0; 0 where there is one rank.

    In closed form, which no constant makes imprecise: (n - r) / (n - 1) * (c + 1) / (c + r).
    """
    values: np.ndarray = (counts - ranks) / np.maximum(counts - 1, 1) * ((constant + 1.0) / (constant + ranks))
    return values


def unit(values: np.ndarray, counts: np.ndarray | None) -> np.ndarray:
    """(C, N) float64: each row mapped so that its lowest value is 0 and its highest 1; a constant row is 0.

    values: (C, N) float, finite where they count, which is the first `counts` of a row, (C, 1); None = N.
    """
    halves = 0.5 * values  # their differences are finite
    if counts is None:
        low, high = halves.min(axis=1, keepdims=True), halves.max(axis=1, keepdims=True)
    else:
        real = np.arange(values.shape[1]) < counts
        low = np.where(real, halves, np.inf).min(axis=1, keepdims=True)
        high = np.where(real, halves, -np.inf).max(axis=1, keepdims=True)
    span = high - low
    halves -= low
    halves /= np.where(span > 0, span, 1.0)
    return halves
