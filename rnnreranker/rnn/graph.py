"""Similarities from a graph of neighbours."""

from __future__ import annotations

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.rnn import checks, dense
from rnnreranker.rnn.api import Base, Lengths, jaccard_of
from rnnreranker.rnn.contexts import ContextBatch, similarities
from rnnreranker.rnn.params import RnnParams

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
    if query is None and base is None:
        raise InputError("neither query nor base: expected inner products with the query, or scores of a run")
    contexts, width = of_graph(edges, weights, rows, query, lengths), np.shape(rows)[1]
    known = checks.scores_of(base, contexts.sizes - 1, width)
    return similarities(contexts, params.of_graph(query is not None), known, width, threads=threads)


def graph_jaccard(
    edges: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    params: RnnParams,
    *,
    probes: np.ndarray,
    query: np.ndarray | None = None,
    lengths: Lengths = None,
    threads: int | None = None,
) -> np.ndarray:
    """Jaccard similarity of probes to every element: (B, P, N + 1) float32; -inf for padding and queries without
    candidates.

    probes: (B, P) int64 elements, 0 = the query, -1 = none (its row is 0). Others, and errors: as in
    `graph_similarity`.
    """
    contexts = of_graph(edges, weights, rows, query, lengths)
    return jaccard_of(contexts, params.of_graph(), probes, np.shape(rows)[1] + 1, threads=threads)


def probe_similarities(
    edges: np.ndarray, weights: np.ndarray, rows: np.ndarray, probes: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """The graph's similarities of probes, (B, P) int64, to every candidate: (B, P, N) float32; 0 for padding.

    Unknown pairs have the lowest known similarity, a document with itself the highest. lengths: (B,).

    Raises:
        InputError: similarities that are not finite.
    """
    contexts = of_graph(edges, weights, rows, None, lengths)
    out = np.zeros((len(rows), probes.shape[1], rows.shape[1]), dtype=np.float32)
    space = np.empty((1, rows.shape[1] + 1, rows.shape[1] + 1), dtype=np.float32)
    for c, m in enumerate(contexts.sizes.tolist()):
        there = (probes[c] > 0) & (probes[c] < m)
        if m > 1:
            contexts.fill(slice(c, c + 1), space, False)
            if np.isnan(space[0, 0, 0]):
                raise InputError(f"row {c} of the batch: {BROKEN}")
            out[c, there, : m - 1] = dense.mapped(space[0, :m, :m], minmax=False)[probes[c, there], 1:]
    return out


def of_graph(
    edges: np.ndarray, weights: np.ndarray, rows: np.ndarray, query: np.ndarray | None, lengths: Lengths
) -> ContextBatch:
    """The contexts of a graph; arguments and errors as in `graph_similarity`.

    Their matrices have -inf for unknown pairs, and a diagonal of inf, or NaN if a similarity is not finite.
    """
    if edges.ndim != 2 or edges.shape != weights.shape or (edges.dtype, weights.dtype) != (np.uint32, np.float16):
        raise InputError(
            f"edges: {edges.dtype} {edges.shape}, weights: {weights.dtype} {weights.shape}; "
            "expected uint32 and float16, (D, K) both"
        )
    rows = checks.integers(rows, "rows")
    if rows.ndim != 2 or not rows.shape[1]:
        raise InputError(f"rows has shape {rows.shape}: expected (B, N), at least one candidate per query")
    real = checks.lengths_of(lengths, len(rows), rows.shape[1])
    columns = np.arange(rows.shape[1]) < real[:, None]
    for row, column in np.argwhere(columns & ((rows < 0) | (rows >= len(edges))))[:1].tolist():
        raise InputError(
            f"rows[{row}, {column}]={rows[row, column]}: expected 0 to {len(edges) - 1}, those of the graph"
        )
    rows = np.where(columns, rows, 0)
    products = checks.scores_of(query, real, rows.shape[1], "query", np.float32)

    def fill(part: slice, gram: np.ndarray, shift_free: bool) -> None:
        near, similar = np.minimum(edges[rows[part]], len(edges)), weights[rows[part]].astype(np.float32)
        element_of = np.zeros(len(edges) + 1, dtype=np.int64)  # of a document in the context, 0 = none
        for c, n in enumerate(real[part].tolist()):
            if n:
                own, sims, elements = rows[part.start + c, :n], gram[c, : n + 1, : n + 1], np.arange(1, n + 1)
                element_of[own] = elements
                other = element_of[near[c, :n]]
                element_of[own] = 0
                i, t = np.nonzero((other > 0) & (other != elements[:, None]))
                known = np.full((n + 1, n + 1), dense.NONE)
                np.fmax.at(known.reshape(-1), (i + 1) * (n + 1) + other[i, t], similar[c, i, t])
                np.fmax(known, known.T, out=sims)
                sims[0, 1:] = -np.sort(-sims[1, 1:]) if products is None else products[part.start + c, :n]
                sims[:, 0] = sims[0]
                np.fill_diagonal(sims, np.inf if np.isfinite(similar[c, i, t]).all() else np.nan)

    return ContextBatch(real + 1, fill, lambda row: BROKEN)
