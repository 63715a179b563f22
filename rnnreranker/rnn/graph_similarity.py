"""Similarities from a graph of neighbours: no vector of a document is read, and no product computed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Protocol

import numpy as np

from rnnreranker.command import cores
from rnnreranker.errors import InputError, ParameterError
from rnnreranker.rnn import chunks, mixing, reference, refusals
from rnnreranker.rnn.engine_setting import EngineSetting
from rnnreranker.rnn.params import RnnParams

CHUNK = 1 << 13  # candidates that an engine is handed at once
LARGEST = float(np.finfo(np.float32).max)


class GraphEngine(Protocol):
    """What turns a chunk of contexts of a graph into Jaccard similarities: the compiled kernel or numpy."""

    def __call__(
        self,
        edges: np.ndarray,
        weights: np.ndarray,
        rows: np.ndarray,
        query: np.ndarray | None,
        sizes: np.ndarray,
        setting: EngineSetting,
        probes: np.ndarray,
        out: np.ndarray,
        problem: np.ndarray,
    ) -> None:
        """Fill the first entries of each row of `out`.

        edges: (D, K) uint32; weights: (D, K) float16; rows: (C, N) int64, distinct within a context, which is the first
        sizes - 1 of its row; query: (C, N) float32, finite, or None. sizes, setting, probes, out, problem: as
        `chunks.Engine`; NaN in `problem`: a similarity of two of its documents is not finite.
        """


def graph_similarity(
    edges: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    params: RnnParams,
    *,
    query: np.ndarray | None = None,
    base: np.ndarray | Sequence[Sequence[float]] | None = None,
    lengths: np.ndarray | Sequence[int] | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """s* of every candidate from a graph of neighbours: (B, N) float32, in candidate order; -inf for padding.

    As `rnn_similarity`, with the similarities that the graph has: two candidates are known to each other where one of
    them is among the K neighbours of the other in the whole collection, with the larger of the two weights. A
    neighbour list holds known elements alone, and where a weight asks for another pair, it counts as the lowest known
    similarity of the context. An element is as similar to itself as the most similar pair is.

    edges: (D, K) uint32 and weights: (D, K) float16, the graph of D documents, in memory or mapped; rows: (B, N)
    integers, the candidates' rows in it, in the order of the first stage, distinct within a query.
    query: (B, N) inner products of query and candidates, on the scale of the weights. None = they are not known: s*
    leaves them out (w_q = 0), and the query's neighbours are those that the first candidate has, dealt out in the
    order of the run: the first candidate gets the largest of its similarities to the others, the second the next.
    base: (B, N) scores of the first stage; None = `query` stands for them.
    lengths, threads: as in `rnn_similarity`.

    Raises:
        InputError: shapes or types that do not fit, rows beyond the graph, similarities or scores that are not finite,
            neither query nor base, parameters that need inner products with the query (`RnnParams.without_query`), rows
            divided by `normalize` with scale "none", an exponential weight that would overflow.

    >>> edges = np.array([[1, 2], [0, 2], [1, 3], [2, 1]], dtype=np.uint32)
    >>> weights = np.array([[0.9, 0.1], [0.9, 0.3], [0.3, 0.2], [0.2, 0.1]], dtype=np.float16)
    >>> found = graph_similarity(edges, weights, np.array([[3, 0, 1]]), RnnParams(k=1), base=[[3.0, 2.0, 1.0]])
    >>> found.shape
    (1, 3)
    """
    if query is None:
        if base is None:
            raise InputError("neither query nor base: expected inner products with the query, or scores of a run")
        params = params.without_query()
    edges, weights, rows, real, products = _checked(edges, weights, rows, params, query, lengths)
    known = refusals.base_scores(base, real, rows.shape[1])
    out = np.full(rows.shape, -np.inf, dtype=np.float32)

    def work_on(part: slice, sizes: np.ndarray, setting: EngineSetting, problem: np.ndarray) -> None:
        width = int(sizes.max()) - 1
        given = None if products is None else products[part, :width]

        def jaccard(probes: np.ndarray) -> np.ndarray:
            found = np.zeros((len(sizes), probes.shape[1], width + 1))
            run(edges, weights, rows[part, :width], given, sizes, setting, probes, found, problem)
            return found

        if setting.minmax:
            wide = None if given is None else given.astype(np.float64)
            found = mixing.mixture(wide, sizes, None if known is None else known[part, :width], params, jaccard)
        else:
            assert given is not None
            found = mixing.eq1(given.astype(np.float64), jaccard(np.zeros((len(sizes), 1), dtype=np.int64)), params)
        real_ones = np.arange(width) < sizes[:, None] - 1
        np.copyto(out[part, :width], found, where=real_ones, casting="same_kind")

    run = engine()
    _by_chunks(work_on, real + 1, params, threads, rows)
    return out


def graph_jaccard(
    edges: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    params: RnnParams,
    *,
    probes: Sequence[int] | np.ndarray = (0,),
    query: np.ndarray | None = None,
    lengths: np.ndarray | Sequence[int] | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Jaccard similarity of probes to every element: (B, P, N + 1) float32; -inf for padding.

    probes: (P,) elements for all queries, or (B, P), where -1 = none (its row is 0); element 0 is the query, element i
    candidate i of the row, from 1. The rest: as `graph_similarity`.

    Raises:
        InputError: as `graph_similarity`, and probes outside the context.
    """
    edges, weights, rows, real, products = _checked(edges, weights, rows, params, query, lengths)
    asked = refusals.integers(probes, "probes")
    asked = np.broadcast_to(asked, (len(rows), *asked.shape[-1:])) if asked.ndim == 1 else asked
    if asked.ndim != 2 or len(asked) != len(rows) or not asked.shape[1]:
        raise InputError(f"probes has shape {np.shape(probes)}: expected (P,) or ({len(rows)}, P), P >= 1")
    if ((asked < -1) | (asked > rows.shape[1])).any():
        raise InputError(f"probes: expected elements 0 (the query) to {rows.shape[1]}, or -1 for none")
    out = np.full((len(rows), asked.shape[1], rows.shape[1] + 1), -np.inf, dtype=np.float32)

    def work_on(part: slice, sizes: np.ndarray, setting: EngineSetting, problem: np.ndarray) -> None:
        width = int(sizes.max())
        given = None if products is None else products[part, : width - 1]
        found = np.zeros((len(sizes), asked.shape[1], width))
        own = np.ascontiguousarray(asked[part])
        run(edges, weights, rows[part, : width - 1], given, sizes, setting, own, found, problem)
        real_ones = (np.arange(width) < sizes[:, None])[:, None]
        np.copyto(out[part, :, :width], found, where=real_ones, casting="same_kind")

    run = engine()
    _by_chunks(work_on, real + 1, params, threads, rows)
    return out


@lru_cache(maxsize=1)
def engine() -> GraphEngine:
    """The compiled kernel, or numpy where `chunks.engine` has numpy."""
    if not chunks.compiles():
        from rnnreranker.rnn.graph_numpy import score_contexts as with_numpy

        return with_numpy
    from rnnreranker.process.phases import phase

    with phase("loading the kernel, which a first use on a machine compiles", "kernel"):
        from rnnreranker.rnn.graph_kernel import score_contexts

        sizes, rows = np.full(1, 2), np.zeros((1, 1), dtype=np.int64)
        edges, weights = np.zeros((1, 1), dtype=np.uint32), np.zeros((1, 1), dtype=np.float16)
        setting = EngineSetting.of(RnnParams(), sizes)
        score_contexts(edges, weights, rows, None, sizes, setting, rows, np.zeros((1, 1, 2)), np.zeros(1))
    return score_contexts


def _by_chunks(
    work_on: Callable[[slice, np.ndarray, EngineSetting, np.ndarray], None],
    sizes: np.ndarray,
    params: RnnParams,
    threads: int | None,
    rows: np.ndarray,
) -> None:
    """Let `work_on` see every range of contexts once, on a pool of threads; raise for the first that has a problem."""
    setting, problem = EngineSetting.of(params, sizes), np.zeros(len(sizes))
    chunk = max(1, CHUNK // max(rows.shape[1], 1))
    starts = itertools.count(0, chunk)

    def work() -> None:
        while (start := next(starts)) < len(sizes):  # one chunk for whoever comes next
            part = slice(start, min(start + chunk, len(sizes)))
            if sizes[part].max() > 1:
                work_on(part, sizes[part], setting, problem[part])

    workers = min(refusals.threads_of(threads) or cores(), -(-len(sizes) // chunk))
    if workers <= 1:
        work()
    else:
        with ThreadPoolExecutor(workers, thread_name_prefix="rnnreranker") as pool:
            for done in [pool.submit(work) for _ in range(workers)]:
                done.result()
    for row in np.flatnonzero(problem)[:1].tolist():
        if np.isnan(problem[row]):
            raise InputError(f"row {row} of the batch: similarities that are NaN or infinite; make the graph again")
        raise ParameterError(f"row {row} of the batch: {reference.too_large(problem[row])}")


def _checked(
    edges: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    params: RnnParams,
    query: np.ndarray | None,
    lengths: np.ndarray | Sequence[int] | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Graph, rows (B, N) int64, real candidates (B,) and products with the query (B, N) float32, 0 at padding."""
    if edges.ndim != 2 or edges.shape != weights.shape or not edges.size:
        raise InputError(f"edges has shape {edges.shape} and weights {weights.shape}: expected (D, K) both")
    if edges.dtype != np.uint32 or weights.dtype != np.float16:
        raise InputError(f"edges has type {edges.dtype} and weights {weights.dtype}: expected uint32 and float16")
    refusals.rows_of_graph(params)
    rows = refusals.integers(rows, "rows")
    if rows.ndim != 2 or not rows.shape[1]:
        raise InputError(f"rows has shape {rows.shape}: expected (B, N), at least one candidate per query")
    real = refusals.lengths_of(lengths, len(rows), rows.shape[1])
    columns = np.arange(rows.shape[1]) < real[:, None]
    if (beyond := columns & ((rows < 0) | (rows >= len(edges)))).any():
        row, column = np.argwhere(beyond)[0].tolist()
        raise InputError(
            f"rows[{row}, {column}]={rows[row, column]}: expected 0 to {len(edges) - 1}, those of the graph"
        )
    rows = np.ascontiguousarray(np.where(columns, rows, 0))
    if query is None:
        return edges, weights, rows, real, None
    products = refusals.base_scores(query, real, rows.shape[1], "query")
    assert products is not None
    if np.abs(products).max(initial=0) > LARGEST:
        raise InputError(f"query: inner products beyond {LARGEST:g}; scale the vectors down")
    return edges, weights, rows, real, products.astype(np.float32)
