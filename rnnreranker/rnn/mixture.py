"""The mixture of first stage, inner products and Jaccard similarities."""

from __future__ import annotations

import functools

import numpy as np

from rnnreranker.rnn import dense
from rnnreranker.rnn.params import RnnParams


def known(products: np.ndarray | None, base: np.ndarray | None, counts: np.ndarray, params: RnnParams) -> np.ndarray:
    """(C, N) float64: the weighted mean of the terms of rank, score and inner product; undefined at padding.

    products: (C, N), None without weight; base: (C, N) scores in the order of the columns, None = the products, the
    highest first; counts: (C, 1).
    """
    wr, ws, wq = weights(params)
    scores = products if base is None else base
    assert scores is not None
    of_scores, ranks = unit(scores, counts), np.arange(1.0, scores.shape[1] + 1)
    terms: list[np.ndarray] = []
    if wr:
        if base is None:  # ties: the earlier first, padding last
            falling = np.where(np.arange(scores.shape[1]) < counts, -scores, np.inf)
            ranks = 1.0 + np.argsort(np.argsort(falling, axis=1, kind="stable"), axis=1)
        terms.append(wr * of_ranks(ranks, counts, params.rank_constant))
    if ws:
        terms.append(ws * of_scores)
    if wq:
        assert products is not None
        terms.append(wq * (of_scores if base is None else unit(products, counts)))
    return functools.reduce(np.add, terms)


def mean_over(probes: np.ndarray, jaccard: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(C, N) float64: the mean of J over the probes, (C, P), -1 = none; jaccard: (C, P, N + 1), changed in place."""
    rows = np.arange(len(probes))
    near = jaccard[:, 0, 1:]
    for nth in range(1, probes.shape[1]):
        probe, own = probes[:, nth], jaccard[:, nth]
        own[rows, probe] = np.where(probe > 0, 1.0, 0.0)  # also of one without neighbours
        near = near + own[:, 1:]
    mean: np.ndarray = near / np.minimum(counts + 1, probes.shape[1])
    return mean


def weights(params: RnnParams) -> tuple[float, float, float]:
    largest = max(params.rank_weight, params.run_weight, params.query_weight)
    shares = [weight / largest for weight in (params.rank_weight, params.run_weight, params.query_weight)]
    wr, ws, wq = (share / sum(shares) for share in shares)
    return wr, ws, wq


def of_ranks(ranks: np.ndarray, counts: np.ndarray | int, constant: float) -> np.ndarray:
    """1 / (constant + rank), min-max over the ranks 1 to `counts`."""
    values: np.ndarray = (counts - ranks) / np.maximum(counts - 1, 1) * ((constant + 1.0) / (constant + ranks))
    return values


def unit(values: np.ndarray, counts: np.ndarray | int) -> np.ndarray:
    """(C, N) float64: min-max of each row over its first `counts` values; a constant row is 0."""
    halves = 0.5 * values  # their differences are finite
    real = np.arange(values.shape[1]) < counts
    low = np.where(real, halves, np.inf).min(axis=1, keepdims=True)
    high = np.where(real, halves, -np.inf).max(axis=1, keepdims=True)
    span = high - low
    halves -= low
    halves /= np.where(span > 0, span, 1.0)
    return halves


def smooth(scores: np.ndarray, products: np.ndarray, share: float, neighbours: int) -> np.ndarray:
    """(R, n) float64: (1 - share) score + share * mean score of the nearest `neighbours` candidates.

    scores: (R, n) float; products: (n + 1, n + 1) float32 inner products, the query first.

    >>> products = np.array([[1, 0, 0, 0], [0, 1, 0.9, 0.1], [0, 0.9, 1, 0.2], [0, 0.1, 0.2, 1]], dtype=np.float32)
    >>> smooth(np.array([[1.0, 0.0, 0.0]]), products, 0.25, 1).tolist()
    [[0.75, 0.25, 0.0]]
    """
    m = len(products)
    closest = dense.closest_of(np.argsort(-products, axis=1, kind="stable"), np.full(m, m), min(neighbours, m))
    out = np.empty(scores.shape)
    dense.smooth(scores.astype(np.float64), np.repeat(closest[None], len(scores), axis=0), share, out)
    return out
