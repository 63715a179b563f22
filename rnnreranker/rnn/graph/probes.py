"""The similarities of some documents of a context to all of it, from a graph of neighbours."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rnnreranker.base.command import cores
from rnnreranker.base.errors import InputError
from rnnreranker.rnn import refusals
from rnnreranker.rnn.engines.when_compiled import compiles
from rnnreranker.rnn.graph.contexts import as_mapped
from rnnreranker.rnn.graph.numpy import known_similarities


def probe_similarities(
    edges: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    probes: np.ndarray,
    lengths: np.ndarray,
    threads: int | None = None,
) -> np.ndarray:
    """What the graph knows of each probe and every candidate of its context: (B, P, N) float32; 0 for padding.

    Of a pair that both rows name the larger similarity counts; a pair that neither names has the lowest known
    similarity of the context; a document is as similar to itself as the most similar pair is. Where nothing is known,
    all is 0.

    edges: (D, K) uint32 and weights: (D, K) float16, the graph; rows: (B, N) int64, candidates' rows in it, distinct
    within a context. probes: (B, P) int64, candidates by their numbers from 1, distinct; others have 0 throughout.
    lengths: (B,) real candidates; threads: None = one per core, nothing depends on it.

    Raises:
        InputError: similarities of a context that are not finite.
    """
    out = np.zeros((len(rows), probes.shape[1], rows.shape[1]), dtype=np.float32)
    problem = np.zeros(len(rows), dtype=np.bool_)
    workers = max(1, min(refusals.threads_of(threads) or cores(), len(rows)))
    bounds = np.linspace(0, len(rows), workers + 1).astype(np.int64).tolist()
    fill = _fill()

    def work(first: int, last: int) -> None:
        part = slice(first, last)
        fill(edges, weights, rows[part], lengths[part], probes[part], out[part], problem[part])

    if workers == 1:
        work(0, len(rows))
    else:
        with ThreadPoolExecutor(workers, thread_name_prefix="rnnreranker") as pool:
            list(pool.map(work, bounds[:-1], bounds[1:]))
    for row in np.flatnonzero(problem)[:1].tolist():
        raise InputError(f"row {row} of the batch: similarities that are NaN or infinite; make the graph again")
    return out


def _fill():  # type: ignore[no-untyped-def]
    """The compiled routine, or numpy where there is no numba."""
    if not compiles():
        return _with_numpy
    from rnnreranker.rnn.graph.rows import fill_rows

    def fill(edges, weights, rows, lengths, probes, out, problem):  # type: ignore[no-untyped-def]
        near, similar = as_mapped(edges, weights)
        given = (np.ascontiguousarray(one, dtype=np.int64) for one in (rows, lengths, probes))
        fill_rows(near, similar, *given, out, problem)

    return fill


def _with_numpy(
    edges: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    lengths: np.ndarray,
    probes: np.ndarray,
    out: np.ndarray,
    problem: np.ndarray,
) -> None:
    """One context at a time, what the compiled routine fills."""
    for c, length in enumerate(lengths.tolist()):
        if length == 0:
            continue
        known = known_similarities(edges, weights, rows[c, :length])[1:, 1:]
        if np.isnan(known).any():
            problem[c] = True
            continue
        real = np.isfinite(known)
        low, high = (known[real].min(), known[real].max()) if real.any() else (0.0, 0.0)
        for r, candidate in enumerate((probes[c] - 1).tolist()):
            if 0 <= candidate < length:
                out[c, r, :length] = np.where(real[candidate], known[candidate], low)
                out[c, r, candidate] = high
