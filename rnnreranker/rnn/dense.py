"""The values of `kernel` to the last bit by NumPy, with its order of sums."""

from __future__ import annotations

import math

import numpy as np

NONE = np.float32(-np.inf)  # the similarity of a pair that is not known


def mapped(sims: np.ndarray, minmax: bool) -> np.ndarray:
    """(m, m) float64, what weights are made of: an unknown pair counts as the lowest, inf as the highest of others."""
    others = sims[(sims > NONE) & ~np.eye(len(sims), dtype=bool)].astype(np.float64)
    low, high = (others.min(), others.max()) if len(others) else (0.0, 0.0)
    values = np.where(sims == NONE, low, np.where(sims == np.inf, high, sims)).astype(np.float64)
    return np.clip((values - low) * (1.0 / (high - low) if high > low else 0.0), 0.0, 1.0) if minmax else values


@np.errstate(all="ignore")
def score(
    gram: np.ndarray,
    sizes: np.ndarray,
    lengths: np.ndarray,
    setting: tuple[bool, int, float, bool, bool],
    divisors: np.ndarray,
    probes: np.ndarray,
    out: np.ndarray,
    closest: np.ndarray,
) -> None:
    """Fill `out` with the Jaccard similarities of probes, and `closest`, of C contexts with m = sizes[c] >= 2.

    - gram: (C, M, S) float32, S of `contexts.scored`. The similarities of context c are gram[c, :m, :m], -inf for
      unknown pairs; a diagonal of inf means the highest of the others.
    - lengths: (C, 3) int64, entries of a list, those that extend (-1 = none), those averaged.
    - setting: whether the authors' variant counts (overlap above 2/3, not at it; exp(p s) - 1; rows of weights divided
      by their sums); weight, 0 linear, 1 exp, 2 binary; weight_scale; whether similarities are mapped to [0, 1];
      whether neighbours must be reciprocal.
    - divisors: (C, M) float64, of the similarities of a row; probes: (C, P) int64, elements.
    - out: (C, P, M) float64, zeros; they stay where a probe is < 0 or >= m.
    - closest: (C, M - 1, n) uint32, zeros: for each candidate the n most similar others that are known, 0 behind them.
    """
    authors, weight, scale, minmax, reciprocal = setting
    for c, m in enumerate(sizes.tolist()):
        if m < 2:
            continue
        sims, (length, columns, top) = gram[c, :m, :m], lengths[c].tolist()
        order, counts = np.argsort(-sims, axis=1, kind="stable"), (sims > NONE).sum(axis=1)[:, None]
        ranks, itself = np.argsort(order, axis=1), np.arange(m)[:, None]
        others = order[1:][(order[1:] != itself[1:]) & (order[1:] > 0)].reshape(m - 1, m - 2)
        others = others[:, : closest.shape[2]]
        closest[c, : m - 1, : others.shape[1]] = np.where(sims[itself[1:], others] > NONE, others, 0)
        sets, short = ranks < np.minimum(length, counts), ranks < np.minimum(columns, counts)
        if reciprocal:
            sets, short = sets & sets.T, short & short.T
        if columns >= 0:
            whole = short.astype(np.float32)
            shared, size = sets.astype(np.float32) @ whole.T, whole.sum(axis=1)  # small integers, exact
            enough = 3 * shared >= 2 * size + authors
            sets = sets | ((enough & sets).astype(np.float32) @ whole > 0)
        values = (mapped(sims, minmax) * (1.0 / divisors[c, :m, None]))[sets]  # in element order, row by row
        if weight:  # NumPy's own exponential has other last bits
            values = np.array([math.exp(scale * value) - authors if weight == 1 else 1.0 for value in values.tolist()])
        rows = np.zeros((m, m))
        rows[sets] = values
        sums = _totals(rows)
        if authors:
            usable = (sums != 0) & np.isfinite(sums)
            rows, sums = np.where(usable[:, None], rows * (1.0 / sums)[:, None], 0.0), usable.astype(np.float64)
        nearest = np.where((np.arange(top) < counts) & (top > 1), order[:, :top], itself)  # without enough, itself
        expanded, totals = np.zeros((m, m)), np.zeros(m)
        for near in nearest.T:
            expanded += rows[near]
            totals += sums[near]
        for r, probe in enumerate(probes[c].tolist()):
            if 0 <= probe < m:
                below = _totals(np.minimum(expanded, expanded[probe]))
                signed = (values < 0).any()
                above = _totals(np.maximum(expanded, expanded[probe])) if signed else totals[probe] + totals - below
                usable = (above != 0) & (np.abs(below) < np.abs(above) * 3e38)
                out[c, r, :m] = np.where(usable, below / above, 0.0)


def _totals(rows: np.ndarray) -> np.ndarray:
    """Sums along the last axis in order; NumPy's own sum goes by pairs."""
    return np.cumsum(rows, axis=-1)[..., -1] + 0.0 if rows.shape[-1] else np.zeros(rows.shape[:-1])


def smooth(scores: np.ndarray, closest: np.ndarray, share: float, out: np.ndarray) -> None:
    """Fill `out`, (C, N) float64, with (1 - share) s*(i) + share * mean of s* over the closest of i; s* without any.

    scores: (C, N) float64; closest: (C, N, n) uint32, elements, 0 = none.
    """
    known, count = np.pad(scores, ((0, 0), (1, 0))), (closest > 0).sum(axis=2)
    total = _totals(known[np.arange(len(scores))[:, None, None], closest])
    out[:] = np.where(count, (1.0 - share) * scores + share * (total / np.maximum(count, 1)), scores)
