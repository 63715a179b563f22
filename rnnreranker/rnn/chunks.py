"""From batches of vectors to chunks of Gram matrices, on a pool of threads; one chunk goes to an engine at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np

from rnnreranker.base.command import cores
from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.rnn import reference
from rnnreranker.rnn.engines.setting import EngineSetting
from rnnreranker.rnn.engines.when_compiled import Engines
from rnnreranker.rnn.params import RnnParams
from rnnreranker.rnn.smoothing import Closest

CHUNK_BYTES = 1 << 21  # Gram matrices handed to an engine at once, at most: what is done once for them is shared


# load(b, rows) gives the vectors of context b: rows, filled with them, or where they lie already, contiguous float32
Load = Callable[[int, np.ndarray], np.ndarray]


class Engine(Protocol):
    """What turns a chunk of Gram matrices into Jaccard similarities: the compiled kernel or its numpy stand-in."""

    def __call__(
        self,
        gram: np.ndarray,
        sizes: np.ndarray,
        setting: EngineSetting,
        probes: np.ndarray,
        out: np.ndarray,
        problem: np.ndarray,
        closest: Closest | None = None,
    ) -> None:
        """Fill the first entries of each row of `out`, and `closest` where it is given.

        gram: (C, M * M) float32; context c is an m x m matrix in the first m * m entries, m = sizes[c]; rows are left
        as lists are sorted by them. A context with m < 2 is left alone. probes: (C, R) int64, elements; out: (C, R, M)
        float64, their Jaccard similarity to every element; that of a probe < 0 or >= m is left alone. problem: (C,)
        float64, 0 on entry; NaN where the diagonal is not finite or too large, the largest exponent where an
        exponential weight would overflow. closest: filled with the candidates that
        have the largest similarity to each candidate, without itself and the query, of equal ones the earlier.
        """


def _plain() -> Engine:
    from rnnreranker.rnn.engines.numpy import score_contexts

    return score_contexts


def _kernel() -> Engine:
    from rnnreranker.rnn.engines.kernel import score_contexts

    _use_once(score_contexts)
    return score_contexts


def _use_once(run: Engine) -> None:
    """Let numba find its machine code or make it now, not within the first work."""
    sizes = np.full(1, 2)
    setting = EngineSetting.of(RnnParams(), sizes)
    probes = np.zeros((1, 1), dtype=np.int64)
    run(np.eye(2, dtype=np.float32).reshape(1, 4), sizes, setting, probes, np.zeros((1, 1, 2)), np.zeros(1))


ENGINES: Engines[Engine] = Engines(_plain, _kernel)


def score(
    load: Load,
    dimension: int,
    sizes: np.ndarray,
    shift_free: bool,
    work_on: Callable[[slice, np.ndarray, np.ndarray], None],
    threads: int | None,
) -> np.ndarray:
    """The `problem` of every context, (B,) float64 (see `Engine`), after `work_on` has seen all of them.

    load(b, rows): see `Load`; rows is (sizes[b], dimension) float32. shift_free: see `reference.inner_products`.
    work_on(rows, gram, problem): does its work on a range of contexts; gram and problem are those of `Engine`. The
    bytes it gets depend on nothing but the context: not on its neighbours in the batch, or the number of threads.
    """
    batch, widest = len(sizes), int(sizes.max(initial=0))
    problem = np.zeros(batch)
    if widest < 2:
        return problem
    most, parallel = max(1, CHUNK_BYTES // (4 * widest * widest)), threads or cores()
    chunk = -(-batch // (parallel * -(-batch // (parallel * most))))  # as many chunks for each thread
    starts = itertools.count(0, chunk)

    @np.errstate(all="ignore")  # infinities are seen in the result
    def work() -> None:
        rows = np.empty((widest, dimension), dtype=np.float32)
        gram = np.empty((chunk, widest * widest), dtype=np.float32)
        while (start := next(starts)) < batch:  # one chunk for whoever comes next
            stop = min(start + chunk, batch)
            for b in range(start, stop):
                m = int(sizes[b])
                if m > 1:
                    context = load(b, rows[:m])
                    # both operands the same array: numpy calls syrk
                    np.matmul(context, context.T, out=gram[b - start, : m * m].reshape(m, m))
            if shift_free:
                for c in outweighed(gram[: stop - start], sizes[start:stop]):
                    m = int(sizes[start + c])
                    context = load(start + c, rows[:m])
                    reference.inner_products(context, shift_free=True, out=gram[c, : m * m].reshape(m, m))
            if sizes[start:stop].max() > 1:
                work_on(slice(start, stop), gram[: stop - start], problem[start:stop])

    workers = min(parallel, -(-batch // chunk))
    with one_blas_thread():
        if workers == 1:
            work()
        else:
            with ThreadPoolExecutor(workers, "rnnreranker") as pool:
                for done in [pool.submit(work) for _ in range(workers)]:
                    done.result()
    return problem


def outweighed(gram: np.ndarray, sizes: np.ndarray) -> list[int]:
    """The contexts in which a constant outweighs the differences, by the rule of `reference.inner_products`.

    gram: as an engine takes it; sizes: (C,).
    """
    widest = int(sizes.max(initial=0))
    if widest < 2:
        return []
    ours = gram[:, 1:widest]  # the query and its candidates
    real = np.arange(1, widest) < sizes[:, None]
    low, high = np.where(real, ours, np.inf).min(axis=1), np.where(real, ours, -np.inf).max(axis=1)
    low, high = low.astype(np.float64), high.astype(np.float64)
    return np.flatnonzero(np.abs(low + high) / 2 > reference.OUTWEIGHS * (high - low)).tolist()
