"""Similarities from a graph of neighbours: no vector of a document is read, and no product computed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rnnreranker.base.command import cores
from rnnreranker.base.errors import InputError, ParameterError
from rnnreranker.rnn import mixing, reference, refusals
from rnnreranker.rnn.engines.setting import EngineSetting
from rnnreranker.rnn.engines.when_compiled import Engines
from rnnreranker.rnn.graph.contexts import GraphContexts, GraphEngine, checked
from rnnreranker.rnn.params import RnnParams
from rnnreranker.rnn.smoothing import Closest

CHUNK = 1 << 13  # candidates that an engine is handed at once


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
    contexts = checked(edges, weights, rows, params, query, lengths)
    known = refusals.base_scores(base, contexts.sizes - 1, contexts.rows.shape[1])
    out = np.full(contexts.rows.shape, -np.inf, dtype=np.float32)

    def work_on(of: slice, part: GraphContexts, setting: EngineSetting, problem: np.ndarray) -> None:
        count, width = part.rows.shape

        def jaccard(probes: np.ndarray, closest: Closest | None = None) -> np.ndarray:
            similarities = np.zeros((count, probes.shape[1], width + 1))
            run(part, setting, probes, similarities, problem, closest)
            return similarities

        products = None if part.query is None else part.query.astype(np.float64)
        if setting.minmax:
            mixed = mixing.mixture(products, part.sizes, None if known is None else known[of, :width], params, jaccard)
        else:
            assert products is not None
            mixed = mixing.eq1(products, jaccard(np.zeros((count, 1), dtype=np.int64)), params)
        np.copyto(out[of, :width], mixed, where=np.arange(width) < part.sizes[:, None] - 1, casting="same_kind")

    run = ENGINES.for_work(contexts.sizes)
    _by_chunks(work_on, contexts, params, threads)
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
    contexts = checked(edges, weights, rows, params, query, lengths)
    count, width = contexts.rows.shape
    asked = refusals.integers(probes, "probes")
    asked = np.broadcast_to(asked, (count, *asked.shape[-1:])) if asked.ndim == 1 else asked
    if asked.ndim != 2 or len(asked) != count or not asked.shape[1]:
        raise InputError(f"probes has shape {np.shape(probes)}: expected (P,) or ({count}, P), P >= 1")
    if ((asked < -1) | (asked > width)).any():
        raise InputError(f"probes: expected elements 0 (the query) to {width}, or -1 for none")
    out = np.full((count, asked.shape[1], width + 1), -np.inf, dtype=np.float32)

    def work_on(of: slice, part: GraphContexts, setting: EngineSetting, problem: np.ndarray) -> None:
        widest = part.rows.shape[1] + 1
        similarities = np.zeros((len(part.sizes), asked.shape[1], widest))
        run(part, setting, np.ascontiguousarray(asked[of]), similarities, problem)
        real = (np.arange(widest) < part.sizes[:, None])[:, None]
        np.copyto(out[of, :, :widest], similarities, where=real, casting="same_kind")

    run = ENGINES.for_work(contexts.sizes)
    _by_chunks(work_on, contexts, params, threads)
    return out


def _plain() -> GraphEngine:
    from rnnreranker.rnn.graph.numpy import score_contexts

    return score_contexts


def _kernel() -> GraphEngine:
    from rnnreranker.rnn.graph.kernel import score_contexts

    rows, sizes = np.zeros((1, 1), dtype=np.int64), np.full(1, 2)
    edges, weights = np.zeros((1, 1), dtype=np.uint32), np.zeros((1, 1), dtype=np.float16)
    contexts = GraphContexts(edges, weights, rows, None, sizes)
    score_contexts(contexts, EngineSetting.of(RnnParams(), sizes), rows, np.zeros((1, 1, 2)), np.zeros(1))
    return score_contexts


ENGINES: Engines[GraphEngine] = Engines(_plain, _kernel)  # as `chunks.ENGINES`


def _by_chunks(
    work_on: Callable[[slice, GraphContexts, EngineSetting, np.ndarray], None],
    contexts: GraphContexts,
    params: RnnParams,
    threads: int | None,
) -> None:
    """Let `work_on` see every range of contexts once, on a pool of threads; raise for the first that has a problem."""
    batch, width = contexts.rows.shape
    setting, problem = EngineSetting.of(params, contexts.sizes), np.zeros(batch)
    chunk = max(1, CHUNK // width)
    starts = itertools.count(0, chunk)

    def work() -> None:
        while (start := next(starts)) < batch:  # one chunk for whoever comes next
            of = slice(start, min(start + chunk, batch))
            if contexts.sizes[of].max() > 1:
                work_on(of, contexts.part(of), setting, problem[of])

    workers = min(refusals.threads_of(threads) or cores(), -(-batch // chunk))
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
