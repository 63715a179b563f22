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
    columns: np.ndarray,
    tops: np.ndarray,
    setting: tuple[bool, int, float, bool],
    divisors: np.ndarray,
    probes: np.ndarray,
    out: np.ndarray,
    closest: np.ndarray,
    reciprocal: bool = True,
) -> None:
    """Fill `out` with the Jaccard similarities of probes, and `closest`, of C contexts with m = sizes[c] >= 2.

    - gram: (C, M, S) float32, of `contexts.matrices`. The similarities of context c are gram[c, :m, :m], -inf for
      unknown pairs and behind them; a diagonal of inf means the highest of the others.
    - lengths, columns, tops: (C,) int64, entries of a list, those that extend (-1 = none), those averaged.
    - setting: whether the authors' variant counts (overlap above 2/3, not at it; exp(p s) - 1; rows of weights divided
      by their sums); weight, 0 linear, 1 exp, 2 binary; weight_scale; whether similarities are mapped to [0, 1].
    - divisors: (C, M) float64, of the similarities of a row; probes: (C, P) int64, elements.
    - out: (C, P, M) float64; unchanged where a probe is < 0 or >= m.
    - closest: (C, M - 1, n) int32, for each candidate the n most similar others, ascending; -1 = none.
    - reciprocal: whether neighbours must be; False is not in `kernel`.
    """
    authors, weight, scale, minmax = setting
    for c, m in enumerate(sizes.tolist()):
        if m < 2:
            continue
        sims = gram[c, :m, :m]
        order, counts = np.argsort(-sims, axis=1, kind="stable"), (sims > NONE).sum(axis=1)
        if closest.shape[2]:
            closest[c, : m - 1] = closest_of(order, counts, closest.shape[2])
        sets, short = np.zeros((2, m, m), dtype=bool)
        for listed, length in ((sets, lengths[c]), (short, max(columns[c], 0))):
            np.put_along_axis(listed, order[:, :length], np.arange(length) < counts[:, None], axis=1)
            if reciprocal:
                listed &= listed.T.copy()
        if columns[c] >= 0:
            whole = short.astype(np.float32)
            shared, size = sets.astype(np.float32) @ whole.T, whole.sum(axis=1)  # small integers, exact
            enough = 3 * shared >= 2 * size + authors
            sets |= (enough & sets).astype(np.float32) @ whole > 0
        values = (mapped(sims, minmax) * (1.0 / divisors[c, :m, None]))[sets]  # in element order, row by row
        if weight:  # NumPy's own exponential has other last bits
            values = np.array([math.exp(scale * value) - authors if weight == 1 else 1.0 for value in values.tolist()])
        rows = np.zeros((m, m))
        rows[sets] = values
        sums = _totals(rows)
        if authors:
            usable = (sums != 0) & np.isfinite(sums)
            rows = np.where(usable[:, None], rows * (1.0 / sums)[:, None], 0.0)
            sums = usable.astype(np.float64)
        top, itself = int(tops[c]), np.arange(m)[:, None]
        near = np.sort(np.where(np.arange(top) < counts[:, None], order[:, :top], m), axis=1)
        expanded, totals = np.zeros((m, m)), np.zeros(m)
        for nearest in (np.where(near < m, near, itself) if top > 1 else itself).T:  # without enough, itself
            expanded += rows[nearest]
            totals += sums[nearest]
        for r, probe in enumerate(probes[c].tolist()):
            if 0 <= probe < m:
                below = np.minimum(expanded, expanded[probe])
                if (values < 0).any():
                    below, above = _totals(below), _totals(np.maximum(expanded, expanded[probe]))
                else:
                    below = _in_parts(below)
                    above = totals[probe] + totals - below
                usable = (above != 0) & (np.abs(below) < np.abs(above) * 3e38)
                out[c, r, :m] = np.where(usable, below / above, 0.0)


def _in_parts(rows: np.ndarray) -> np.ndarray:
    """Row sums of eight interleaved parts."""
    padded = np.zeros((len(rows), -(-rows.shape[1] // 8), 8))
    padded.reshape(len(rows), -1)[:, : rows.shape[1]] = rows
    parts = _totals(np.moveaxis(padded, 1, 2))
    while parts.shape[1] > 1:
        parts = parts[:, : parts.shape[1] // 2] + parts[:, parts.shape[1] // 2 :]
    return parts[:, 0]


def _totals(rows: np.ndarray) -> np.ndarray:
    """Sums along the last axis in order; NumPy's own sum goes by pairs."""
    return np.cumsum(rows, axis=-1)[..., -1] + 0.0 if rows.shape[-1] else np.zeros(rows.shape[:-1])


def closest_of(order: np.ndarray, counts: np.ndarray, lenders: int) -> np.ndarray:
    """(m - 1, lenders) int32: the nearest candidates of each, ascending, -1 = none.

    order: (m, m) elements by falling similarity to that of the row; counts: (m,) known ones.
    """
    m = len(order)
    listed = order[1:]
    among = (listed != np.arange(1, m)[:, None]) & (listed != 0) & (np.arange(m) < counts[1:, None])
    rank = np.where(among, among.cumsum(axis=1), lenders + 1)  # from 1
    nearest = np.full((m - 1, max(lenders, m) + 2), m, dtype=np.int32)
    np.put_along_axis(nearest, rank, listed.astype(np.int32), axis=1)
    nearest = np.sort(nearest[:, 1 : lenders + 1], axis=1)
    return np.where(nearest < m, nearest, np.int32(-1))


def smooth(scores: np.ndarray, closest: np.ndarray, share: float, out: np.ndarray) -> None:
    """Fill `out`, (C, N) float64, with (1 - share) s*(i) + share * mean of s* over the nearest of i; s* without any.

    scores: (C, N) float64; closest: (C, N, n) int32, -1 = none.
    """
    there = closest > 0
    taken = np.take_along_axis(scores[:, :, None], np.maximum(closest, 1).reshape(len(closest), -1, 1) - 1, axis=1)
    total, count = _totals(np.where(there, taken.reshape(closest.shape), 0.0)), there.sum(axis=2)
    out[:] = np.where(count, (1.0 - share) * scores + share * (total / np.maximum(count, 1)), scores)


def known_pairs(
    near: np.ndarray, similar: np.ndarray, rows: np.ndarray, query: np.ndarray, sizes: np.ndarray, gram: np.ndarray
) -> None:
    """Fill `gram` from a graph: its similarities where known.

    near: (C, N, K) uint32 and similar: (C, N, K) float32, neighbours; rows: (C, N) int64; query: (C, N) float32, or
    (C, 0): the similarities of the first candidate in falling order. The diagonal is inf, or NaN if a similarity is
    not finite.
    """
    for c, m in enumerate(sizes.tolist()):
        if m < 2:
            continue
        sims = gram[c, :m, :m]
        own, edges = rows[c, : m - 1], near[c, : m - 1]
        order = np.argsort(own, kind="stable")
        other = order[np.minimum(np.searchsorted(own[order], edges), m - 2)]
        i, t = np.nonzero((own[other] == edges) & (other != np.arange(m - 1)[:, None]))
        sims[:] = NONE
        np.fmax.at(sims, (i + 1, other[i, t] + 1), similar[c, i, t])
        np.fmax(sims, sims.T.copy(), out=sims)
        sims[0, 1:] = query[c, : m - 1] if query.shape[1] else -np.sort(-sims[1, 1:])
        sims[:, 0] = sims[0]
        np.fill_diagonal(sims, np.inf if np.isfinite(similar[c, i, t]).all() else np.nan)
