"""s* of a batch of contexts."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.base.command import cores, notice, phase
from rnnreranker.base.errors import InputError, ParameterError, count_of, instance_of
from rnnreranker.base.jobs import one_blas_thread
from rnnreranker.rnn import dense, mixture, reference
from rnnreranker.rnn.params import RnnParams

CHUNK_BYTES = 1 << 20  # of matrices that are filled at once, at most: they stay in the cache
LARGEST = 1e38  # square of a vector's length: no inner product of two overflows
WIDEST = 1100  # elements of contexts that NumPy takes: it has some ten matrices of all pairs
FIRST = 1_000_000  # pairs of elements that NumPy compares sooner than the kernel is there

_done = 0  # pairs of elements of all work so far


@functools.lru_cache(maxsize=1)
def kernel() -> Any:
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


def engine_for(sizes: np.ndarray) -> Any:
    """The module `dense` or `kernel`: NumPy until loading the kernel pays."""
    global _done
    _done += int(np.square(sizes, dtype=np.int64).sum())
    small = _done <= FIRST and sizes.max(initial=0) <= WIDEST and not kernel.cache_info().currsize
    return dense if small else kernel()


@dataclass(frozen=True)
class ContextBatch:
    """B contexts and what makes their similarities.

    sizes: (B,) int64, elements of each context, with the query. fill(part, gram, shift_free) fills matrices, (C, M, S)
    float32, of a range of contexts. broken: what is wrong with a context whose diagonal is NaN or too large. products:
    whether similarities are inner products of vectors, for which see `reference.inner_products`.
    """

    sizes: np.ndarray
    fill: Callable[[slice, np.ndarray, bool], None]
    broken: Callable[[int], str]
    products: bool = False


def scored(
    contexts: ContextBatch,
    params: RnnParams,
    probes: np.ndarray,
    engine: Any,
    *,
    lenders: int = 0,
    by_products: bool = False,
    reciprocal: bool = True,
    threads: int | None = None,
) -> tuple[np.ndarray, ...]:
    """The Jaccard similarities of probes, (B, P) int64, to all elements: (B, P, M) float64.

    Also returned: the similarities to the query that sort lists, (B, M - 1) float64, and `closest` of `dense.score`.

    lenders: how many closest candidates to return. by_products: all probes but the first become the candidates nearest
    to the query, in place; those of -1 stay.

    Raises:
        InputError: similarities that are not finite, an exponential weight that would overflow.
    """
    instance_of(params, RnnParams, "params")
    sizes, minmax = contexts.sizes, params.scale == "minmax"
    batch, widest = len(sizes), max(2, int(sizes.max(initial=0)))
    weight = ("linear", "exp", "binary").index(params.weight)
    setting = params.variant == "authors", weight, params.weight_scale, minmax, reciprocal
    of_size = {
        m: (
            reference.list_length(m, params),
            reference.extension_columns(m, params) if params.tau > 0 else -1,
            reference.nearest_taken(m, params),
        )
        for m in set(sizes.tolist())
    }
    lengths = np.array([of_size[m] for m in sizes.tolist()], dtype=np.int64).reshape(batch, 3)
    jaccard, products = np.zeros((batch, probes.shape[1], widest)), np.zeros((batch, widest - 1))
    closest = np.zeros((batch, widest - 1, lenders), dtype=np.uint32)
    problems = np.zeros(batch)  # NaN: the diagonal is NaN or too large; else an exponent that would overflow
    workers = cores() if threads is None else count_of(threads, "threads")
    stride = 64 * -(-widest // 64) + 16  # in columns, no power of two: they share no line of a cache
    chunk = max(1, min(-(-batch // workers), CHUNK_BYTES // (4 * widest * stride)))
    starts = itertools.count(0, chunk)

    @np.errstate(all="ignore")  # infinities are seen in the result
    def work() -> None:
        space, all_divisors = np.zeros((chunk, widest, stride), dtype=np.float32), np.ones((chunk, widest))
        while (start := next(starts)) < batch:  # each thread takes the next chunk
            part = slice(start, min(start + chunk, batch))
            gram, own, problem = space[: part.stop - start], sizes[part], problems[part]
            near = gram[:, 0, 1:widest]
            contexts.fill(part, gram, False)
            real = np.arange(1, widest) < own[:, None]
            sound = gram.diagonal(axis1=1, axis2=2) <= (LARGEST if contexts.products else np.inf)
            if not sound.all():
                problem[~sound.all(axis=1)] = np.nan
            if contexts.products and minmax:
                values = np.where(real, near, near[:, :1])
                low, high = values.min(axis=1).astype(np.float64), values.max(axis=1).astype(np.float64)
                for c in np.flatnonzero(np.abs(low + high) / 2 > reference.OUTWEIGHS * (high - low)).tolist():
                    contexts.fill(slice(start + c, start + c + 1), gram[c : c + 1], True)
            if by_products:
                values = np.where(real, near, -np.inf)
                for probe in probes[part].T[1:]:  # the first of equal ones
                    best = values.argmax(axis=1)
                    probe[probe > 0] = best[probe > 0] + 1
                    values[np.arange(len(values)), best] = -np.inf
            divisors, divided = all_divisors[: len(gram)], params.normalize or params.weight == "exp"
            for c in np.flatnonzero((problem == 0) & (own > 1)).tolist() if divided else ():
                divisors[c, : own[c]], problem[c] = _divisors(gram[c, : own[c], : own[c]], params)
            usable, filled = np.where(problem == 0, own, 0), (jaccard[part], closest[part])
            engine.score(gram, usable, lengths[part], setting, divisors, probes[part], *filled)
            products[part] = near

    in_threads(work, min(workers, -(-batch // chunk)))
    for row in np.flatnonzero(problems)[:1].tolist():
        if np.isnan(problems[row]):
            raise InputError(f"row {row} of the batch: {contexts.broken(row)}")
        raise ParameterError(f"row {row} of the batch: {reference.too_large(problems[row])}")
    return jaccard, products, closest


def in_threads(work: Callable[[], object], workers: int) -> None:
    """Run `work` in so many threads, BLAS on one."""
    with one_blas_thread():
        if workers < 2:
            work()
            return
        with ThreadPoolExecutor(workers, thread_name_prefix="rnnreranker") as pool:
            for done in [pool.submit(work) for _ in range(workers)]:
                done.result()


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
    contexts: ContextBatch, params: RnnParams, base: np.ndarray | None, width: int, **how: Any
) -> np.ndarray:
    """s* of the candidates, (B, width) float32, -inf at padding.

    base: (B, N) or wider, None = similarities to the query; how: threads and reciprocal, as in `scored`.

    Raises:
        InputError: as `scored`.
    """
    instance_of(params, RnnParams, "params")
    counts, engine = contexts.sizes[:, None] - 1, engine_for(contexts.sizes)
    widest, minmax = int(counts.max(initial=1)), params.scale == "minmax"
    probes = np.tile(np.arange(min(params.probes, widest + 1) if minmax else 1), (len(counts), 1))
    probes[probes > counts] = -1
    lenders, by_products = min(params.smoothed_over, widest - 1), base is None and probes.shape[1] > 1
    jaccard, known, closest = scored(contexts, params, probes, engine, lenders=lenders, by_products=by_products, **how)
    near = mixture.mean_over(probes, jaccard, counts)
    if minmax:
        known = mixture.known(known, None if base is None else base[:, :widest], counts, params)
    scores = params.lam * known + (1.0 - params.lam) * near
    if lenders:
        smoothed = np.empty(scores.shape)
        engine.smooth(scores, closest, params.smoothing, smoothed)
        scores = smoothed
    return padded(scores, counts[:, 0], width)


def padded(values: np.ndarray, counts: np.ndarray, width: int) -> np.ndarray:
    """Cut or pad `values` to `width`, float32: -inf after each row's first `counts`."""
    out = np.full((*counts.shape, width), -np.inf, dtype=np.float32)
    there, common = np.arange(width) < counts[..., None], min(width, values.shape[-1])
    np.copyto(out[..., :common], values[..., :common], where=there[..., :common], casting="same_kind")
    return out
