"""The compiled kernel's results to the bit with numpy alone: dense, 2 to 10 times slower, and there at once.

Every sum is added up in the kernel's order, and what it multiplies by an inverse is not divided here. Small work needs
no more; larger work begins so while the kernel is loaded, and a Python without numba has nothing else.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.rnn.smoothing import Closest, closest_bits

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnnreranker.rnn.engines.setting import EngineSetting

    Sets = Callable[[np.ndarray, int, EngineSetting], np.ndarray]  # of lists (m, L), m and the setting: a mask (m, m)

DENSE = 256  # elements of contexts whose minima are added up in lanes
LANES = 8


@np.errstate(all="ignore")
def score_contexts(
    gram: np.ndarray,
    sizes: np.ndarray,
    setting: EngineSetting,
    probes: np.ndarray,
    out: np.ndarray,
    problem: np.ndarray,
    closest: Closest | None = None,
    sets: Sets | None = None,
) -> None:
    """Fill `out` for a chunk of contexts; the contract is in `chunks.Engine`. sets: in place of the reciprocal ones."""
    make = sets or reciprocal_sets
    for i, m in enumerate(sizes.tolist()):
        if m < 2:
            continue
        sims = gram[i, : m * m].reshape(m, m)
        if not (sims.diagonal() <= setting.largest_square).all():
            problem[i] = np.nan
            continue
        low, span, divisor = 0.0, 1.0, np.ones(m)
        if setting.minmax:
            low, span = _range(sims)
            mapped = _mapped(sims.astype(np.float64), low, span)
            divisor = _divisors(mapped, setting.normalize)
        else:
            sims[:] = sims.astype(np.float64) / _divisors(sims.astype(np.float64), setting.normalize)[:, None]
            mapped = sims.astype(np.float64)
        if setting.weight == 1:
            largest = setting.weight_scale * (mapped * (1.0 / divisor)[:, None]).max()
            if largest > setting.exponent_limit:
                problem[i] = largest
                continue
        order = np.argsort(-sims, axis=1, kind="stable")
        if closest is not None and closest.count:
            closest.bits[i, : m - 1, : (m + 63) // 64] = closest_bits(order, np.full(m, m), closest.count)
        shares = weights(make(order[:, : setting.lists[m]], m, setting), sims, (low, span), divisor, setting)
        nearest = np.arange(m)[:, None] if setting.nearest[m] == 1 else np.sort(order[:, : setting.nearest[m]], axis=1)
        jaccard(shares, nearest, probes[i], out[i, :, :m])


def _range(sims: np.ndarray) -> tuple[float, float]:
    """The lowest similarity of two different elements, and the distance to the highest."""
    others = sims[~np.eye(len(sims), dtype=bool)].astype(np.float64)
    return float(others.min()), float(others.max() - others.min())


def _mapped(sims: np.ndarray, low: float, span: float) -> np.ndarray:
    """Similarities, float64, mapped to [0, 1]; 0 where all are equal."""
    return np.clip((sims - low) / span, 0.0, 1.0) if span > 0 else np.zeros(sims.shape)


def _divisors(sims: np.ndarray, how: int) -> np.ndarray:
    """(m,) float64: the maximum of every row, or 1e-8 + its mean; 1 where that cannot divide it, or for neither."""
    if how == 0:
        return np.ones(len(sims))
    divisor = sims.max(axis=1) if how == 1 else 1e-8 + _totals(sims) / len(sims)
    return np.where(np.abs(sims).max(axis=1) < np.abs(divisor) * 3e38, divisor, 1.0)


def reciprocal_sets(order: np.ndarray, m: int, setting: EngineSetting) -> np.ndarray:
    """The reciprocal sets, extended when the setting says so, as a mask (m, m): row i = members of R*(i)."""
    base = _reciprocal(order, m)
    columns = setting.columns[m]
    if columns < 0:
        return base
    short = _reciprocal(order[:, :columns], m).astype(np.float32)
    shared = base.astype(np.float32) @ short.T  # (i, q): |T_q & R(i)|, small integers, exact
    sizes = short.sum(axis=1)
    enough = 3 * shared > 2 * sizes if setting.authors else 3 * shared >= 2 * sizes
    return base | ((enough & base).astype(np.float32) @ short > 0)


def _reciprocal(order: np.ndarray, m: int) -> np.ndarray:
    listed = np.zeros((m, m), dtype=bool)
    listed[np.arange(m)[:, None], order] = True
    return listed & listed.T


def weights(
    members: np.ndarray, sims: np.ndarray, bounds: tuple[float, float], divisor: np.ndarray, setting: EngineSetting
) -> tuple[np.ndarray, np.ndarray, bool]:
    """(m, m) float64: row i = the weights of the members of R*(i), 0 elsewhere; (m,) sums; whether any is negative.

    With the authors' variant rows are divided by their sums, and empty where that cannot be; negative ones are looked
    for before. sims: (m, m) float32; bounds: the lowest similarity and the span, of min-max; divisor: (m,).
    """
    low, span = bounds
    values = sims[members].astype(np.float64)  # in element order, row by row
    if setting.weight == 2:
        values[:] = 1.0
    else:
        if setting.minmax:
            values = np.clip((values - low) * (1.0 / span if span > 0 else 0.0), 0.0, 1.0)
        values *= np.repeat(1.0 / divisor, members.sum(axis=1))
    if setting.weight == 1:  # numpy's own exponential has other last bits
        values = np.array([math.exp(setting.weight_scale * value) for value in values.tolist()])
        values -= 1.0 if setting.authors else 0.0
    rows = np.zeros(members.shape)
    rows[members] = values
    sums, signed = _totals(rows), bool((values < 0).any())
    if setting.authors:
        usable = (sums != 0) & np.isfinite(sums)
        rows = np.where(usable[:, None], rows * (1.0 / np.where(usable, sums, 1.0))[:, None], 0.0)
        sums = usable.astype(np.float64)
    return rows, sums, signed


def jaccard(
    shares: tuple[np.ndarray, np.ndarray, bool], nearest: np.ndarray, probes: np.ndarray, out: np.ndarray
) -> None:
    """Set out[r], (m,) float64, to the similarities of probe r to every element, of those probes that are elements.

    shares: of `weights`; nearest: (m, k_exp), elements whose rows are added up, ascending; probes: (P,).
    """
    weights, sums, signed = shares
    rows, totals = np.zeros(weights.shape), np.zeros(len(weights))
    for near in nearest.T:
        rows += weights[near]
        totals += sums[near]
    for r, probe in enumerate(probes.tolist()):
        if not 0 <= probe < len(rows):
            continue
        lower = np.minimum(rows, rows[probe])
        below = _in_lanes(lower) if len(rows) <= DENSE and not signed else _totals(lower)
        above = _totals(np.maximum(rows, rows[probe])) if signed else totals[probe] + totals - below
        usable = (above != 0) & (np.abs(below) < np.abs(above) * 3e38)
        out[r] = np.where(usable, below / np.where(usable, above, 1.0), 0.0)


def _in_lanes(rows: np.ndarray) -> np.ndarray:
    """Row sums by eight sums, of every eighth column, which are added up in halves."""
    padded = np.zeros((len(rows), -(-rows.shape[1] // LANES) * LANES))
    padded[:, : rows.shape[1]] = rows
    sums = np.zeros((len(rows), LANES))
    for first in range(0, padded.shape[1], LANES):
        sums += padded[:, first : first + LANES]
    while sums.shape[1] > 1:
        sums = sums[:, : sums.shape[1] // 2] + sums[:, sums.shape[1] // 2 :]
    return sums[:, 0]


def _totals(rows: np.ndarray) -> np.ndarray:
    """Row sums in column order, as the kernel adds, from 0 on; numpy's own sum goes by pairs."""
    return np.cumsum(rows, axis=1)[:, -1] + 0.0
