"""Similarity of candidates to the positives of their query, as in `smooth`, from a graph of the collection alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.labels.smooth import mixture
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.graph_similarity import graph_jaccard

if TYPE_CHECKING:
    from rnnreranker.neighbours import NeighbourGraph

BYTES = 16  # for each neighbour of a candidate, while similarities are made of them


def mixed(
    graph: NeighbourGraph,
    rows: np.ndarray,
    positives: int,
    params: RnnParams,
    lengths: np.ndarray,
    threads: int | None = None,
) -> np.ndarray:
    """s*(l, c) of the first candidates, the positives, and every candidate: (B, R, N) float32; 0 for padding.

    Args:
        graph: of the collection.
        rows: (B, N) int64, of the candidates, R positives first, then in the order of the run.
        positives: R.
        params: rNN parameters.
        lengths: (B,) real candidates.
        threads: None = one per core; nothing depends on it.

    Raises:
        InputError: rows of the graph that cannot be used, rows divided by `normalize` with scale "none".
    """
    return mixture(
        params,
        lambda: geometric(graph, rows, positives, params, lengths),
        lambda: jaccard(graph, rows, positives, params, lengths, threads),
    )


def jaccard(
    graph: NeighbourGraph,
    rows: np.ndarray,
    positives: int,
    params: RnnParams,
    lengths: np.ndarray,
    threads: int | None = None,
) -> np.ndarray:
    """J(l, c): (B, R, N) float32; 0 for padding; arguments and errors as `mixed`.

    The query's neighbours are those of the first positive, dealt out in the order of `rows`.
    """
    edges, weights = np.asarray(graph.edges), np.asarray(graph.weights)
    probes = np.arange(1, positives + 1)
    found = graph_jaccard(edges, weights, rows, params, probes=probes, lengths=lengths, threads=threads)[:, :, 1:]
    return np.where(np.isfinite(found), found, np.float32(0.0))


def geometric(
    graph: NeighbourGraph, rows: np.ndarray, positives: int, params: RnnParams, lengths: np.ndarray
) -> np.ndarray:
    """s(l, c): (B, R, N) float32, mapped over the candidates as `params` says; 0 for padding; the rest as `mixed`.

    A pair that neither document names counts as the lowest similarity that the context has, a positive is as similar to
    itself as the most similar pair is.
    """
    if params.scale == "none" and params.normalize:
        raise InputError(f"normalize={params.normalize}: a graph has no whole rows to divide; expected none")
    out = np.zeros((len(rows), positives, rows.shape[1]), dtype=np.float32)
    for b, length in enumerate(lengths.tolist()):
        found = _similarities(graph, rows[b, :length], min(positives, length))
        if params.scale == "minmax":
            low, high = found.min(axis=1, keepdims=True), found.max(axis=1, keepdims=True)
            found = (found - low) / np.where(high > low, high - low, 1.0)
        out[b, : len(found), :length] = found
    return out


def _similarities(graph: NeighbourGraph, rows: np.ndarray, positives: int) -> np.ndarray:
    """(R, n) float64: of the first R of (n,) rows to all of them."""
    edges, weights = graph.fetch(rows)
    order = np.argsort(rows, kind="stable")
    other = order[np.minimum(np.searchsorted(rows, edges, sorter=order), len(rows) - 1)]
    i, t = np.nonzero((rows[other] == edges) & (other != np.arange(len(rows))[:, None]))
    j, values = other[i, t], weights[i, t].astype(np.float64)
    found = np.full((positives, len(rows)), -np.inf)
    for one, two in ((i, j), (j, i)):
        asked = one < positives
        np.maximum.at(found, (one[asked], two[asked]), values[asked])
    low, high = (values.min(), values.max()) if len(values) else (0.0, 0.0)
    found[np.isinf(found)] = low
    found[np.arange(positives), np.arange(positives)] = high
    return found
