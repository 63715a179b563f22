"""The graph form with numpy alone, for a Python without numba: a dense matrix of one context at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.rnn import fallback

if TYPE_CHECKING:
    from rnnreranker.rnn.engine_setting import EngineSetting
    from rnnreranker.rnn.graph_contexts import GraphContexts


def score_contexts(
    contexts: GraphContexts, setting: EngineSetting, probes: np.ndarray, out: np.ndarray, problem: np.ndarray
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
        raw = np.where(real, known, known[real].min() if real.any() else np.float32(0))
        raw[np.diag_indices(m)] = known[real].max() if real.any() else 0
        sims = fallback.similarities(raw, setting)[1]
        if setting.weight == 1 and (largest := setting.weight_scale * sims.max()) > setting.exponent_limit:
            problem[c] = largest
            continue
        real[np.diag_indices(m)] = True
        known[np.diag_indices(m)] = np.inf
        order = np.argsort(-known, axis=1, kind="stable")
        counts, numbers = real.sum(axis=1), np.arange(m)[:, None]
        order = np.where(np.arange(m) < counts[:, None], order, numbers)  # an element fills its own list
        members = fallback.reciprocal_sets(order[:, : setting.lists[m]], m, setting)
        shares, nearest = fallback.weights(members, sims, setting), setting.nearest[m]
        expanded = shares if nearest == 1 else shares[np.sort(order[:, :nearest], axis=1)].sum(axis=1)
        for r, probe in enumerate(probes[c].tolist()):
            if 0 <= probe < m:
                out[c, r, :m] = fallback.jaccard(expanded, probe)


def known_similarities(
    edges: np.ndarray, weights: np.ndarray, rows: np.ndarray, query: np.ndarray | None = None
) -> np.ndarray:
    """(N + 1, N + 1) float32: known similarities of a context, -inf elsewhere; NaN where a weight is not finite.

    edges, weights: the graph; rows: (N,); query: (N,), None = as `graph_reference.known_similarities`.
    """
    edges, weights = edges[rows], weights[rows].astype(np.float32)
    m = len(rows) + 1
    found = np.full((m, m), -np.inf, dtype=np.float32)
    order = np.argsort(rows, kind="stable")
    places = np.minimum(np.searchsorted(rows[order], edges), m - 2)
    other = order[places]
    i, t = np.nonzero((rows[other] == edges) & (other != np.arange(m - 1)[:, None]))
    values = np.where(np.isfinite(weights[i, t]), weights[i, t], np.nan)
    np.maximum.at(found, (i + 1, other[i, t] + 1), values)
    found = np.maximum(found, found.T)
    if query is None:
        query = np.sort(found[1, 1:])[::-1]
    found[0, 1:] = found[1:, 0] = query
    return found
