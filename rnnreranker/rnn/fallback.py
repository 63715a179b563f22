"""The same results as the compiled kernel with numpy alone, for a Python without numba: dense, 2 to 10 times slower."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnnreranker.rnn.engine_setting import EngineSetting

    Sets = Callable[[np.ndarray, int, EngineSetting], np.ndarray]  # of lists (m, L), m and the setting: a mask (m, m)


def score_contexts(
    gram: np.ndarray,
    sizes: np.ndarray,
    setting: EngineSetting,
    probes: np.ndarray,
    out: np.ndarray,
    problem: np.ndarray,
    sets: Sets | None = None,
) -> None:
    """Fill `out` for a chunk of contexts; the contract is in `chunks.Engine`. sets: in place of the reciprocal ones."""
    make = sets or reciprocal_sets
    for i, m in enumerate(sizes.tolist()):
        if m < 2:
            continue
        raw = gram[i, : m * m].reshape(m, m)
        if not (raw.diagonal() <= setting.largest_square).all():
            problem[i] = np.nan
            continue
        ranking, sims = similarities(raw, setting)
        if not setting.minmax:
            raw[:] = ranking
        if setting.weight == 1 and (largest := setting.weight_scale * sims.max()) > setting.exponent_limit:
            problem[i] = largest
            continue
        nearest = setting.nearest[m]
        order = np.argsort(-ranking, axis=1, kind="stable")
        rows = weights(make(order[:, : setting.lists[m]], m, setting), sims, setting)
        expanded = rows if nearest == 1 else rows[np.sort(order[:, :nearest], axis=1)].sum(axis=1)
        for r, probe in enumerate(probes[i].tolist()):
            if 0 <= probe < m:
                out[i, r, :m] = jaccard(expanded, probe)


def similarities(raw: np.ndarray, setting: EngineSetting) -> tuple[np.ndarray, np.ndarray]:
    """What lists are sorted by (float32) and what weights are made of (float64), both (m, m)."""
    if not setting.minmax:
        ranking = _normalized(raw.astype(np.float64), setting.normalize).astype(np.float32)
        return ranking, ranking.astype(np.float64)
    others = raw[~np.eye(len(raw), dtype=bool)].astype(np.float64)
    low, high = others.min(), others.max()
    mapped = np.zeros(raw.shape) if low == high else np.clip((raw.astype(np.float64) - low) / (high - low), 0.0, 1.0)
    return raw, _normalized(mapped, setting.normalize)


def _normalized(sims: np.ndarray, how: int) -> np.ndarray:
    if how == 0:
        return sims
    divisor = sims.max(axis=1) if how == 1 else 1e-8 + _totals(sims) / len(sims)
    usable = np.abs(sims).max(axis=1) < np.abs(divisor) * 3e38
    return sims / np.where(usable, divisor, 1.0)[:, None]


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


def weights(members: np.ndarray, sims: np.ndarray, setting: EngineSetting) -> np.ndarray:
    """(m, m) float64: row i = the weights of the members of R*(i), with the authors' variant of sum 1; 0 elsewhere."""
    if setting.weight == 0:
        weights = np.where(members, sims, 0.0)
    elif setting.weight == 1:
        weights = np.exp(setting.weight_scale * np.where(members, sims, 0.0)) - (1.0 if setting.authors else 0.0)
        weights = np.where(members, weights, 0.0)
    else:
        weights = members.astype(np.float64)
    if not setting.authors:
        return weights
    divisor = _totals(weights)
    usable = (divisor != 0) & np.isfinite(divisor)
    return np.where(usable[:, None], weights / np.where(usable, divisor, 1.0)[:, None], 0.0)


def jaccard(rows: np.ndarray, probe: int) -> np.ndarray:
    """(m,) float64: the sum of minima over the sum of maxima, of every row of weights and the probe's."""
    below = _totals(np.minimum(rows[probe], rows))
    above = _totals(np.maximum(rows[probe], rows))
    usable = (above != 0) & (np.abs(below) < np.abs(above) * 3e38)
    return np.where(usable, below / np.where(usable, above, 1.0), 0.0)


def _totals(rows: np.ndarray) -> np.ndarray:
    """Row sums in column order, as the kernel adds; numpy's own sum goes by pairs."""
    return np.cumsum(rows, axis=1)[:, -1]
