"""s* of a batch of contexts."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.base.command import cores, notice
from rnnreranker.base.errors import InputError, ParameterError
from rnnreranker.base.process.phases import phase
from rnnreranker.rnn import checks, dense, mixture, reference
from rnnreranker.rnn.params import RnnParams

CHUNK_BYTES = 1 << 21  # of matrices that are filled at once, at most: they stay in the cache
LARGEST = 1e38  # square of a vector's length: no inner product of two overflows
WIDEST = 1100  # elements of contexts that NumPy takes: it has some ten matrices of all pairs
FIRST = 1_000_000  # pairs of elements that NumPy compares sooner than the kernel is there

Engine = Any  # the module `dense` or `kernel`: score, smooth, known_pairs
_done = 0  # pairs of elements of all work so far


def matrices(contexts: int, widest: int) -> np.ndarray:
    """(C, M, S) float32, all -inf: space for matrices of M elements, as the kernel reads 64 at a time."""
    return np.full((contexts, widest, (widest + 63) // 64 * 64 + 48), -np.inf, dtype=np.float32)


@functools.lru_cache(maxsize=1)
def kernel() -> Engine:
    """The compiled engine; NumPy's, with a notice, if numba cannot compile."""
    try:
        import numba

        if getattr(numba.config, "DISABLE_JIT", 0):
            raise ImportError("NUMBA_DISABLE_JIT switches numba off")
        with phase("loading the kernel, which a first use on a machine compiles", "kernel"):
            from rnnreranker.rnn import kernel as compiled
    except ImportError as error:
        notice(f"numba cannot be used ({error}): similarities are computed with NumPy, 2 to 10 times slower")
        return dense
    return compiled


def warm_up() -> None:
    """Load or compile the kernel now, before the first question of a service; results do not depend on it."""
    kernel()


def engine_for(sizes: np.ndarray) -> Engine:
    """NumPy until loading the kernel pays."""
    global _done
    _done += int(np.square(sizes, dtype=np.int64).sum())
    small = _done <= FIRST and sizes.max(initial=0) <= WIDEST and not kernel.cache_info().currsize
    return dense if small else kernel()


class PlainNeighbours:
    """NumPy's engine without reciprocity."""

    score = staticmethod(functools.partial(dense.score, reciprocal=False))
    smooth, known_pairs = staticmethod(dense.smooth), staticmethod(dense.known_pairs)


@dataclass(frozen=True)
class ContextBatch:
    """B contexts and what makes their similarities.

    sizes: (B,) int64, elements of each context, with the query. fill(engine, part, gram, shift_free) fills matrices,
    (C, M, S) float32, of a range of contexts. broken: what is wrong with a context whose diagonal is NaN or too large.
    products: whether similarities are inner products of vectors, for which see `reference.inner_products`.
    """

    sizes: np.ndarray
    fill: Callable[[Engine, slice, np.ndarray, bool], None]
    broken: Callable[[int], str]
    products: bool = False

    @property
    def counts(self) -> np.ndarray:
        return self.sizes[:, None] - 1


@dataclass(frozen=True)
class JaccardScores:
    """jaccard: (B, P, M) float64; products: (B, M - 1) float64, similarities to the query as lists are sorted by them;
    probes: (B, P) int64; closest: as in `dense.score`.
    """

    jaccard: np.ndarray
    products: np.ndarray
    probes: np.ndarray
    closest: np.ndarray


def scored(
    contexts: ContextBatch,
    params: RnnParams,
    probes: np.ndarray,
    *,
    lenders: int = 0,
    by_products: bool = False,
    threads: int | None = None,
    engine: Engine | None = None,
) -> JaccardScores:
    """The Jaccard similarities of probes, (B, P) int64, to all elements.

    lenders: how many closest candidates to return. by_products: all probes but the first become the candidates nearest
    to the query, -1 if fewer.

    Raises:
        InputError: similarities that are not finite, an exponential weight that would overflow.
    """
    sizes = contexts.sizes
    batch, widest = len(sizes), max(2, int(sizes.max(initial=0)))
    engine, minmax = engine or engine_for(sizes), params.scale == "minmax"
    setting = params.variant == "authors", ("linear", "exp", "binary").index(params.weight), params.weight_scale, minmax
    distinct, which = np.unique(sizes, return_inverse=True)
    of_size = [
        (
            reference.list_length(m, params),
            reference.extension_columns(m, params) if params.tau > 0 else -1,
            reference.nearest_taken(m, params),
        )
        for m in distinct.tolist()
    ]
    lengths = np.array(of_size, dtype=np.int64).reshape(-1, 3)[which].T.copy()
    result = JaccardScores(
        jaccard=np.zeros((batch, probes.shape[1], widest)),
        products=np.zeros((batch, widest - 1)),
        probes=probes.copy(),
        closest=np.full((batch, widest - 1, lenders), -1, dtype=np.int32),
    )
    problems = np.zeros(batch)  # NaN: the diagonal is NaN or too large; else an exponent that would overflow
    parallel = threads or cores()
    most = max(1, CHUNK_BYTES // matrices(1, widest).nbytes)
    chunk = -(-batch // (parallel * -(-batch // (parallel * most)))) if batch else 1  # as many for each thread
    starts = itertools.count(0, chunk)

    @np.errstate(all="ignore")  # infinities are seen in the result
    def work() -> None:
        room, held = matrices(chunk, widest), np.zeros(chunk, dtype=np.int64)
        while (start := next(starts)) < batch:  # each thread takes the next chunk
            part = slice(start, min(start + chunk, batch))
            gram, own = room[: part.stop - start], sizes[part]
            for c in np.flatnonzero(held[: len(gram)] > own):
                gram[c, :, own[c] :] = -np.inf
            held[: len(gram)] = own
            contexts.fill(engine, part, gram, False)
            near, problem, divisors = gram[:, 0, 1:widest], problems[part], np.ones((len(gram), widest))
            diagonal = gram.diagonal(axis1=1, axis2=2)
            problem[~(diagonal <= (LARGEST if contexts.products else np.inf)).all(axis=1)] = np.nan
            if contexts.products and minmax:
                for c in np.flatnonzero(_outweighed(near)):
                    contexts.fill(engine, slice(start + c, start + c + 1), gram[c : c + 1], True)
            if by_products:
                _nearest(near, result.probes[part])
            for c in np.flatnonzero((problem == 0) & (own > 1)) if params.normalize or params.weight == "exp" else ():
                divisors[c, : own[c]], problem[c] = _divisors(gram[c, : own[c], : own[c]], params)
            sound = np.where(problem == 0, own, 0)
            filled = result.probes[part], result.jaccard[part], result.closest[part]
            engine.score(gram, sound, *lengths[:, part], setting, divisors, *filled)
            result.products[part] = near

    checks.in_threads(work, min(parallel, -(-batch // chunk)))
    for row in np.flatnonzero(problems)[:1].tolist():
        if np.isnan(problems[row]):
            raise InputError(f"row {row} of the batch: {contexts.broken(row)}")
        raise ParameterError(f"row {row} of the batch: {reference.too_large(problems[row])}")
    return result


def _outweighed(near: np.ndarray) -> np.ndarray:
    """(C,) bool: whether a constant outweighs the differences of similarities to the query, (C, N), -inf at padding."""
    low = np.where(near > dense.NONE, near, np.inf).min(axis=1).astype(np.float64)
    high = near.max(axis=1).astype(np.float64)
    outweighed: np.ndarray = abs(low + high) / 2.0 > reference.OUTWEIGHS * (high - low)
    return outweighed


def _nearest(near: np.ndarray, probes: np.ndarray) -> None:
    """Set all probes but the first to the candidates nearest to the query, of equal ones the earlier first."""
    left, rows = near.copy(), np.arange(len(near))
    for nth in range(1, probes.shape[1]):
        best = left.argmax(axis=1)
        probes[:, nth] = np.where(left[rows, best] > dense.NONE, best + 1, -1)
        left[rows, best] = dense.NONE


def _divisors(sims: np.ndarray, params: RnnParams) -> tuple[np.ndarray | float, float]:
    """What divides the rows of weights, (m,) or 1, and the exponent that would overflow, or 0.

    Raw similarities, by which lists are sorted, are divided in place.
    """
    values, known, divisor = dense.mapped(sims, params.scale == "minmax"), sims > dense.NONE, np.ones(len(sims))
    if params.normalize:
        mean = 1e-8 + np.where(known, values, 0.0).sum(axis=1) / len(sims)
        divisor = np.where(known, values, -np.inf).max(axis=1) if params.normalize == "max" else mean
        divisor = np.where(np.abs(values).max(axis=1) < np.abs(divisor) * 3e38, divisor, 1.0)
        values /= divisor[:, None]
        if params.scale == "none":
            sims[:], divisor = values, np.ones(len(sims))
    exponent = params.weight_scale * float(values.max())
    return divisor, exponent if params.weight == "exp" and exponent > reference.EXPONENT_LIMIT else 0.0


@np.errstate(all="ignore")  # what is at padding is not used
def similarities(
    contexts: ContextBatch,
    params: RnnParams,
    base: np.ndarray | None,
    width: int,
    *,
    threads: int | None = None,
    engine: Engine | None = None,
) -> np.ndarray:
    """s* of the candidates, (B, width) float32, -inf at padding; base: (B, N) or wider, None = similarities to the
    query. InputError: as `scored`.
    """
    counts = contexts.counts
    batch, widest = len(counts), max(2, int(contexts.sizes.max(initial=0)))
    engine, base = engine or engine_for(contexts.sizes), None if base is None else base[:, : widest - 1]
    probes = np.tile(np.arange(min(params.probes, widest) if params.scale == "minmax" else 1), (batch, 1))
    probes[probes > counts] = -1
    lenders, by_products = min(params.smoothed_over, widest - 2), base is None and probes.shape[1] > 1
    result = scored(contexts, params, probes, lenders=lenders, by_products=by_products, threads=threads, engine=engine)
    products, near = result.products, mixture.mean_over(result.probes, result.jaccard, counts)
    known = products if params.scale == "none" else mixture.known(products, base, counts, params)  # none: eq. 1
    scores = params.lam * known + (1.0 - params.lam) * near
    if lenders:
        smoothed = np.empty(scores.shape)
        engine.smooth(scores, result.closest, params.smoothing, smoothed)
        scores = smoothed
    return padded(scores, counts[:, 0], width)


def padded(values: np.ndarray, counts: np.ndarray, width: int) -> np.ndarray:
    """Cut or pad `values` to `width`, float32: -inf after each row's first `counts`."""
    out = np.full((*counts.shape, width), -np.inf, dtype=np.float32)
    there, common = np.arange(width) < counts[..., None], min(width, values.shape[-1])
    np.copyto(out[..., :common], values[..., :common], where=there[..., :common], casting="same_kind")
    return out
