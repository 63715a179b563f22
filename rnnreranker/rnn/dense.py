"""The values of `kernel` to the last bit by NumPy, with its order of sums."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rnnreranker.base.files import fingerprint
from rnnreranker.rnn import reference
from rnnreranker.rnn.params import RnnParams

NONE = np.float32(-np.inf)  # the similarity of a pair that is not known


def kernel_sources() -> str:
    return fingerprint(*(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("kernel*.py"))))


class Setting(NamedTuple):
    """`RnnParams` and properties of the matrices, for engines."""

    authors: bool  # overlap above 2/3, not at it; exp(p s) - 1; rows of weights divided by their sums
    weight: int  # 0 linear, 1 exp, 2 binary
    weight_scale: float
    normalize: int  # 0 none, 1 max, 2 mean
    minmax: bool
    limit: float  # of exponents
    largest: float  # of the diagonal
    outweighs: float  # times the range of the query's similarities: beyond that their middle is a constant to take off
    by_products: bool  # whether all probes but the first are chosen by them

    @classmethod
    def of(cls, params: RnnParams, largest: float, outweighs: float, by_products: bool) -> Setting:
        weight = ("linear", "exp", "binary").index(params.weight)
        normalize, minmax = (None, "max", "mean").index(params.normalize), params.scale == "minmax"
        return cls(
            params.variant == "authors", weight, params.weight_scale, normalize, minmax, reference.EXPONENT_LIMIT,
            largest, outweighs if minmax else np.inf, by_products,
        )  # fmt: skip


@np.errstate(all="ignore")
def score(
    gram: np.ndarray,
    sizes: np.ndarray,
    lengths: np.ndarray,
    columns: np.ndarray,
    tops: np.ndarray,
    setting: Setting,
    probes: np.ndarray,
    out: np.ndarray,
    problem: np.ndarray,
    closest: np.ndarray,
    reciprocal: bool = True,
) -> None:
    """Fill `out` and `closest` for some contexts, as `contexts.Engine` says; reciprocal: whether neighbours must be."""
    for c, m in enumerate(sizes.tolist()):
        if m < 2:
            continue
        sims = gram[c, :m, :m]
        if not (sims.diagonal() <= setting.largest).all():
            problem[c] = np.nan
            continue
        low, high = float(sims[0, 1:].min()), float(sims[0, 1:].max())
        if abs(low + high) / 2 > setting.outweighs * (high - low):
            problem[c] = np.inf
            continue
        if setting.by_products:
            chosen = np.argsort(-sims[0, 1:], kind="stable")[: probes.shape[1] - 1] + 1
            probes[c, 1:] = np.concatenate([chosen, np.full(probes.shape[1] - 1 - len(chosen), -1)])
        if setting.normalize and not setting.minmax:  # the lists depend on it
            sims[:] = sims.astype(np.float64) / _divisors(sims.astype(np.float64), sims > NONE, setting.normalize)
        known = sims > NONE
        others = sims[known & ~np.eye(m, dtype=bool)]
        least, most = (float(others.min()), float(others.max())) if len(others) else (0.0, 0.0)
        values = np.where(known, np.where(sims == np.inf, most, sims), least).astype(np.float64)
        span, divisor = most - least, np.ones((m, 1))
        if setting.minmax:
            mapped = np.clip((values - least) / span, 0.0, 1.0) if span > 0 else np.zeros((m, m))
            divisor = _divisors(mapped, known, setting.normalize)
        if setting.weight == 1:
            exponent = setting.weight_scale * float(((mapped if setting.minmax else values) * (1.0 / divisor)).max())
            if exponent > setting.limit:
                problem[c] = exponent
                continue
        order, counts = np.argsort(-sims, axis=1, kind="stable"), known.sum(axis=1)
        if closest.shape[2]:
            closest[c, : m - 1] = closest_of(order, counts, closest.shape[2])
        lists, short = (_mask(order[:, :length], counts) for length in (lengths[c], max(columns[c], 0)))
        if reciprocal:
            lists, short = lists & lists.T, short & short.T
        members = extended(lists, short, bool(setting.authors)) if columns[c] >= 0 else lists
        if setting.minmax:
            values = np.clip((values - least) * (1.0 / span if span > 0 else 0.0), 0.0, 1.0)
        shares = _weights(members, values * (1.0 / divisor), setting)
        _jaccard(*shares, _nearest(order, counts, int(tops[c])), probes[c], out[c, :, :m])


def _divisors(values: np.ndarray, known: np.ndarray, how: int) -> np.ndarray:
    """(m, 1) float64: the maximum of each row, or 1e-8 + its mean, over known pairs; 1 if it cannot divide."""
    if not how:
        return np.ones((len(values), 1))
    of_known = np.where(known, values, 0.0)
    mean = 1e-8 + _totals(of_known) / len(values)
    divisor = np.where(known, values, -np.inf).max(axis=1) if how == 1 else mean
    return np.where(np.abs(of_known).max(axis=1) < np.abs(divisor) * 3e38, divisor, 1.0)[:, None]


def _mask(order: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(m, m) bool: the known members of lists."""
    listed = np.zeros((len(order), len(order)), dtype=bool)
    np.put_along_axis(listed, order, np.arange(order.shape[1]) < counts[:, None], axis=1)
    return listed


def extended(sets: np.ndarray, short: np.ndarray, authors: bool) -> np.ndarray:
    """Each set joined with its members' short sets that overlap it enough."""
    whole = short.astype(np.float32)
    shared, sizes = sets.astype(np.float32) @ whole.T, whole.sum(axis=1)  # small integers, exact
    enough = 3 * shared > 2 * sizes if authors else 3 * shared >= 2 * sizes
    return sets | ((enough & sets).astype(np.float32) @ whole > 0)


def _nearest(order: np.ndarray, counts: np.ndarray, top: int) -> np.ndarray:
    """(m, top) elements whose rows are added up, ascending."""
    m, itself = len(order), np.arange(len(order))[:, None]
    if top == 1:
        return itself
    near = np.sort(np.where(np.arange(top) < counts[:, None], order[:, :top], m), axis=1)
    return np.where(near < m, near, itself)


def _weights(members: np.ndarray, values: np.ndarray, setting: Setting) -> tuple[np.ndarray, np.ndarray, bool]:
    """(m, m) float64, the sums of rows, (m,), and whether any is negative."""
    held = np.ones(int(members.sum())) if setting.weight == 2 else values[members]  # in element order, row by row
    if setting.weight == 1:  # NumPy's own exponential has other last bits
        held = np.array([math.exp(setting.weight_scale * value) for value in held.tolist()])
        held -= 1.0 if setting.authors else 0.0
    rows = np.zeros(members.shape)
    rows[members] = held
    sums, signed = _totals(rows), bool((held < 0).any())
    if setting.authors:
        usable = (sums != 0) & np.isfinite(sums)
        rows = np.where(usable[:, None], rows * (1.0 / np.where(usable, sums, 1.0))[:, None], 0.0)
        sums = usable.astype(np.float64)
    return rows, sums, signed


def _jaccard(
    weights: np.ndarray, sums: np.ndarray, signed: bool, nearest: np.ndarray, probes: np.ndarray, out: np.ndarray
) -> None:
    """Set out[r], (m,) float64, for probes that are elements."""
    rows, totals = np.zeros(weights.shape), np.zeros(len(weights))
    for near in nearest.T:
        rows += weights[near]
        totals += sums[near]
    for r, probe in enumerate(probes.tolist()):
        if not 0 <= probe < len(rows):
            continue
        if signed:
            below = _totals(np.minimum(rows, rows[probe]))
            above = _totals(np.maximum(rows, rows[probe]))
        else:
            below = _in_parts(np.minimum(rows, rows[probe]))
            above = totals[probe] + totals - below
        usable = (above != 0) & (np.abs(below) < np.abs(above) * 3e38)
        out[r] = np.where(usable, below / np.where(usable, above, 1.0), 0.0)


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
    listed, itself = order[1:], np.arange(1, m)[:, None]
    among = (listed != itself) & (listed != 0) & (np.arange(m) < counts[1:, None])
    among &= among.cumsum(axis=1) <= lenders
    nearest = np.full((m - 1, lenders), m, dtype=np.int32)
    rows, columns = np.nonzero(among)
    nearest[rows, among.cumsum(axis=1)[rows, columns] - 1] = listed[rows, columns]
    nearest.sort(axis=1)
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
    """Fill the matrices of some contexts of a graph, as `contexts.Engine` says."""
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
