"""The mixture of first stage, inner products and Jaccard similarities."""

from __future__ import annotations

import numpy as np

from rnnreranker.rnn.params import RnnParams


def known(products: np.ndarray | None, base: np.ndarray | None, counts: np.ndarray, params: RnnParams) -> np.ndarray:
    """(C, N) float64: the weighted mean of the terms of rank, score and inner product; undefined at padding.

    products: (C, N), None without weight; base: (C, N) scores in the order of the columns, None = the products, the
    highest first; counts: (C, 1).
    """
    wr, ws, wq = weights(params)
    scores = products if base is None else base
    assert scores is not None
    of_scores, ranks = unit(scores, counts), np.arange(1.0, scores.shape[1] + 1)[None]
    terms: list[np.ndarray] = []
    if wr:
        if base is None:  # ties: the earlier first, padding last
            columns = np.arange(scores.shape[1])
            bits = (np.where(columns < counts, scores, -np.inf).astype(np.float32) + np.float32(0)).view(np.int32)
            falling = np.where(bits < 0, bits & 0x7FFFFFFF, -bits).astype(np.int64)  # in the order of the scores
            keys = np.sort(falling << 32 | columns, axis=1)  # several times faster than a sort of positions
            ranks = np.empty(scores.shape)
            np.put_along_axis(ranks, keys & 0xFFFFFFFF, columns[None] + 1.0, axis=1)
        c = params.rank_constant  # 1 / (c + rank), min-max over the ranks
        terms.append(wr * ((counts - ranks) / np.maximum(counts - 1, 1) * ((c + 1.0) / (c + ranks))))
    if ws:
        terms.append(ws * of_scores)
    if wq:
        assert products is not None
        terms.append(wq * (of_scores if base is None else unit(products, counts)))
    return sum(terms[1:], terms[0])


def mean_over(probes: np.ndarray, jaccard: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(C, N) float64: the mean of J over the probes, (C, P), -1 = none; jaccard: (C, P, N + 1), changed in place."""
    rows, near = np.arange(len(probes)), jaccard[:, 0, 1:]
    for nth in range(1, probes.shape[1]):
        probe, own = probes[:, nth], jaccard[:, nth]
        own[rows, probe] = np.where(probe > 0, 1.0, 0.0)  # also of one without neighbours
        near = near + own[:, 1:]
    return near / np.minimum(counts + 1, probes.shape[1])


def weights(params: RnnParams) -> tuple[float, float, float]:
    largest = max(params.rank_weight, params.run_weight, params.query_weight)
    shares = [weight / largest for weight in (params.rank_weight, params.run_weight, params.query_weight)]
    wr, ws, wq = (share / sum(shares) for share in shares)
    return wr, ws, wq


def unit(values: np.ndarray, counts: np.ndarray | int) -> np.ndarray:
    """(C, N) float64: min-max of each row over its first `counts` values; a constant row is 0."""
    halves = 0.5 * values  # their differences are finite
    real = np.where(np.arange(values.shape[1]) < counts, halves, halves[:, :1])
    low = real.min(axis=1, keepdims=True, initial=np.inf)
    span = real.max(axis=1, keepdims=True, initial=-np.inf) - low
    halves -= low
    halves /= np.where(span > 0, span, 1.0)
    return halves
