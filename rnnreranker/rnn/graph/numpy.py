"""The graph form with numpy alone, to the bits of the compiled one: a dense matrix of one context at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.rnn.engines import numpy as fallback
from rnnreranker.rnn.smoothing import Closest, closest_bits

if TYPE_CHECKING:
    from rnnreranker.rnn.engines.setting import EngineSetting
    from rnnreranker.rnn.graph.contexts import GraphContexts


@np.errstate(all="ignore")
def score_contexts(
    contexts: GraphContexts,
    setting: EngineSetting,
    probes: np.ndarray,
    out: np.ndarray,
    problem: np.ndarray,
    closest: Closest | None = None,
) -> None:
    """Fill `out` for a chunk of contexts; the contract is in `graph_contexts.GraphEngine`."""
    edges, weights, rows, query, sizes = contexts
    for c, m in enumerate(sizes.tolist()):
        if m < 2:
            continue
        own = rows[c, : m - 1]
        known = known_similarities(edges, weights, own, None if query is None else query[c, : m - 1])
        if np.isnan(known).any():
            problem[c] = np.nan
            continue
        real = np.isfinite(known)
        low, high = (known[real].min(), known[real].max()) if real.any() else (np.float32(0), np.float32(0))
        sims = np.where(real, known, low)
        sims[np.diag_indices(m)] = high
        low, span = float(low), float(high) - float(low)
        divisor = _means(known, real, low, span) if setting.normalize == 2 and span > 0 else np.ones(m)
        if setting.weight == 1:
            largest = (1.0 / divisor.min() if span > 0 else 0.0) if setting.minmax else float(high)
            if setting.weight_scale * largest > setting.exponent_limit:
                problem[c] = setting.weight_scale * largest
                continue
        real[np.diag_indices(m)] = True
        known[np.diag_indices(m)] = np.inf
        order = np.argsort(-known, axis=1, kind="stable")
        counts, numbers = real.sum(axis=1), np.arange(m)[:, None]
        if closest is not None and closest.count:
            closest.bits[c, : m - 1, : (m + 63) // 64] = closest_bits(order, counts, closest.count)
        order = np.where(np.arange(m) < counts[:, None], order, numbers)  # an element fills its own list
        members = fallback.reciprocal_sets(order[:, : setting.lists[m]], m, setting)
        shares = fallback.weights(members, sims, (low, span), divisor, setting)
        nearest = numbers if setting.nearest[m] == 1 else np.sort(order[:, : setting.nearest[m]], axis=1)
        fallback.jaccard(shares, nearest, probes[c], out[c, :, :m])


def _means(known: np.ndarray, real: np.ndarray, low: float, span: float) -> np.ndarray:
    """(m,) float64: 1e-8 and the mean of every row, itself included; the first that is added up is itself."""
    mapped = np.where(real, np.clip((known.astype(np.float64) - low) / span, 0.0, 1.0), 0.0)
    return 1e-8 + np.cumsum(np.insert(mapped, 0, 1.0, axis=1), axis=1)[:, -1] / len(known)


def known_similarities(
    edges: np.ndarray, weights: np.ndarray, rows: np.ndarray, query: np.ndarray | None = None
) -> np.ndarray:
    """(N + 1, N + 1) float32: known similarities of a context, -inf elsewhere; NaN where a weight is not finite.

    edges, weights: the graph; rows: (N,); query: (N,), None = as `graph_reference.known_similarities`.
    """
    edges, weights = edges[rows], weights[rows].astype(np.float32)
    m = len(rows) + 1
    similarities = np.full((m, m), -np.inf, dtype=np.float32)
    order = np.argsort(rows, kind="stable")
    positions = np.minimum(np.searchsorted(rows[order], edges), m - 2)
    other = order[positions]
    i, t = np.nonzero((rows[other] == edges) & (other != np.arange(m - 1)[:, None]))
    values = np.where(np.isfinite(weights[i, t]), weights[i, t], np.nan)
    np.maximum.at(similarities, (i + 1, other[i, t] + 1), values)
    similarities = np.maximum(similarities, similarities.T)
    if query is None:
        query = np.sort(similarities[1, 1:])[::-1]
    similarities[0, 1:] = similarities[1:, 0] = query
    return similarities
