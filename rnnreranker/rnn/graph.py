"""Similarities from a graph of neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.rnn import checks, dense
from rnnreranker.rnn.api import Base, Lengths
from rnnreranker.rnn.contexts import ContextBatch, Engine, engine_for, matrices, padded, scored, similarities
from rnnreranker.rnn.params import RnnParams

LARGEST = float(np.finfo(np.float32).max)
BROKEN = "similarities that are NaN or infinite; make the graph again"


def graph_similarity(
    edges: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    params: RnnParams,
    *,
    query: np.ndarray | None = None,
    base: Base = None,
    lengths: Lengths = None,
    threads: int | None = None,
) -> np.ndarray:
    """s* of every candidate from a graph of neighbours: (B, N) float32, in candidate order; -inf for padding.

    A pair is known if one document is among the K neighbours of the other in the whole collection; the larger weight
    counts. Lists hold known elements only. In weights, an unknown pair counts as the lowest known similarity of the
    context, an element with itself as the highest.

    edges: (D, K) uint32 and weights: (D, K) float16, the graph; rows: (B, N) integers, the candidates' rows in it, in
    the order of the first stage, distinct within a query.
    query: (B, N) inner products with the query, on the scale of the weights. None = unknown: w_q = 0, and the query
    gets the similarities of the first candidate, largest first.
    base: (B, N) scores of the first stage; None = `query`. lengths, threads: as in `rnn_similarity`.

    Raises:
        InputError: as `rnn_similarity`, rows beyond the graph, neither query nor base, parameters that need unknown
            inner products (`RnnParams.without_query`) or whole rows (`normalize` with scale "none").

    >>> edges = np.array([[1, 2], [0, 2], [1, 3], [2, 1]], dtype=np.uint32)
    >>> weights = np.array([[0.9, 0.1], [0.9, 0.3], [0.3, 0.2], [0.2, 0.1]], dtype=np.float16)
    >>> result = graph_similarity(edges, weights, np.array([[3, 0, 1]]), RnnParams(k=1), base=[[3.0, 2.0, 1.0]])
    >>> result.shape
    (1, 3)
    """
    if query is None:
        if base is None:
            raise InputError("neither query nor base: expected inner products with the query, or scores of a run")
        params = params.without_query()
    contexts, width = of_graph(edges, weights, rows, params, query, lengths), np.shape(rows)[1]
    known = checks.base_scores(base, contexts.sizes - 1, width)
    return similarities(contexts, params, known, width, threads=checks.threads_of(threads))


def graph_jaccard(
    edges: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    params: RnnParams,
    *,
    probes: Sequence[int] | np.ndarray = (0,),
    query: np.ndarray | None = None,
    lengths: Lengths = None,
    threads: int | None = None,
) -> np.ndarray:
    """Jaccard similarity of probes to every element: (B, P, N + 1) float32; -inf for padding and queries without
    candidates.

    probes: (P,) elements for all queries, or (B, P), where -1 = none (its row is 0); 0 = the query. Others, and errors:
    as in `graph_similarity`.
    """
    contexts = of_graph(edges, weights, rows, params, query, lengths)
    count, width = np.shape(rows)
    asked = checks.integers(probes, "probes")
    asked = np.tile(asked, (count, 1)) if asked.ndim == 1 else asked
    if asked.ndim != 2 or len(asked) != count or not asked.shape[1]:
        raise InputError(f"probes has shape {np.shape(probes)}: expected (P,) or ({count}, P), P >= 1")
    if ((asked < -1) | (asked > width)).any():
        raise InputError(f"probes: expected elements 0 (the query) to {width}, or -1 for none")
    result = scored(contexts, params, asked, threads=checks.threads_of(threads))
    there = np.where(contexts.sizes > 1, contexts.sizes, 0)[:, None]
    return padded(result.jaccard, np.broadcast_to(there, asked.shape), width + 1)


def probe_similarities(
    edges: np.ndarray, weights: np.ndarray, rows: np.ndarray, probes: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """The graph's similarities of probes, (B, P) int64, to every candidate: (B, P, N) float32; 0 for padding.

    Unknown pairs have the lowest known similarity, a document with itself the highest. lengths: (B,).

    Raises:
        InputError: similarities that are not finite.
    """
    contexts = of_graph(edges, weights, rows, RnnParams(), None, lengths)
    out = np.zeros((len(rows), probes.shape[1], rows.shape[1]), dtype=np.float32)
    engine, room = engine_for(contexts.sizes), matrices(1, rows.shape[1] + 1)
    for c, m in enumerate(contexts.sizes.tolist()):
        sims, there = room[0, :m, :m], (probes[c] > 0) & (probes[c] < m)
        if m > 1:
            contexts.fill(engine, slice(c, c + 1), room, False)
            if np.isnan(sims[0, 0]):
                raise InputError(f"row {c} of the batch: {BROKEN}")
            out[c, there, : m - 1] = dense.mapped(sims, minmax=False)[probes[c, there], 1:]
    return out


def of_graph(
    edges: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    params: RnnParams,
    query: np.ndarray | None,
    lengths: Lengths,
) -> ContextBatch:
    """The contexts of a graph; arguments and errors as in `graph_similarity`."""
    if edges.ndim != 2 or edges.shape != weights.shape or (edges.dtype, weights.dtype) != (np.uint32, np.float16):
        raise InputError(
            f"edges: {edges.dtype} {edges.shape}, weights: {weights.dtype} {weights.shape}; "
            "expected uint32 and float16, (D, K) both"
        )
    checks.rows_of_graph(params)
    rows = checks.integers(rows, "rows")
    if rows.ndim != 2 or not rows.shape[1]:
        raise InputError(f"rows has shape {rows.shape}: expected (B, N), at least one candidate per query")
    real = checks.lengths_of(lengths, len(rows), rows.shape[1])
    columns = np.arange(rows.shape[1]) < real[:, None]
    if (beyond := columns & ((rows < 0) | (rows >= len(edges)))).any():
        row, column = np.argwhere(beyond)[0].tolist()
        raise InputError(
            f"rows[{row}, {column}]={rows[row, column]}: expected 0 to {len(edges) - 1}, those of the graph"
        )
    rows = np.where(columns, rows, 0)
    products = np.empty((len(rows), 0)) if query is None else checks.base_scores(query, real, rows.shape[1], "query")
    if np.abs(products).max(initial=0) > LARGEST:  # type: ignore[arg-type]
        raise InputError(f"query: inner products beyond {LARGEST:g}; scale the vectors down")
    asked = np.ascontiguousarray(products, dtype=np.float32)

    def fill(engine: Engine, part: slice, gram: np.ndarray, shift_free: bool) -> None:
        own = rows[part]
        near, similar = np.asarray(edges[own]), np.asarray(weights[own]).astype(np.float32)
        engine.known_pairs(near, similar, own, asked[part], real[part] + 1, gram)

    return ContextBatch(real + 1, fill, lambda row: BROKEN)
