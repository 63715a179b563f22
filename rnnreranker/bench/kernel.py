"""The similarity kernel against its own Gram product, in pairs, by the processor time of one thread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rnnreranker.rnn import RnnParams, rnn_similarity
from rnnreranker.rnn.contexts import one_blas_thread

SHORTEST = 0.02  # seconds a measurement lasts at least: contexts are repeated until it does


@dataclass(frozen=True)
class KernelTime:
    """A row of the table: N candidates of d dimensions, microseconds a query, medians over the pairs.

    ratio, low, high: median, lowest and highest of the pairwise ratios kernel / Gram product.
    """

    candidates: int
    dimension: int
    tau: float
    scale: str
    gram: float
    kernel: float
    ratio: float
    low: float
    high: float
    pairs: int


def kernel_time(candidates: int, dimension: int, params: RnnParams, pairs: int, seed: int = 0) -> KernelTime:
    """The cost of `rnn_similarity` on one thread, everything included, beside the product X Xᵀ alone.

    Each pair measures one after the other, so that a change of the machine's speed meets both; the time is that of the
    thread, so that other processes do not count.

    Args:
        candidates: N of every query.
        dimension: of the vectors, which are random, float32.
        params: of the similarity.
        pairs: how many times both are measured.
        seed: of the vectors.
    """
    rng = np.random.default_rng(seed)
    batch = max(1, min(256, 60_000 // candidates))
    queries = rng.standard_normal((batch, dimension), dtype=np.float32)
    vectors = rng.standard_normal((batch, candidates, dimension), dtype=np.float32)
    contexts = np.concatenate([queries[:, None], vectors], axis=1)
    product = np.empty((candidates + 1, candidates + 1), dtype=np.float32)

    def gram() -> None:
        for context in contexts:
            np.matmul(context, context.T, out=product)

    def kernel() -> None:
        rnn_similarity(queries, vectors, params, threads=1)

    kernel()  # compiles, or loads what was compiled
    with one_blas_thread():
        repeats = 1 + int(SHORTEST / max(_seconds(gram, 1), 1e-9))
        measured = [(_seconds(gram, repeats), _seconds(kernel, repeats)) for _ in range(pairs)]
    each = 1e6 / (batch * repeats)
    ratios = [with_all / alone for alone, with_all in measured]
    return KernelTime(
        candidates=candidates,
        dimension=dimension,
        tau=params.tau,
        scale=params.scale,
        gram=statistics.median(alone for alone, _ in measured) * each,
        kernel=statistics.median(with_all for _, with_all in measured) * each,
        ratio=statistics.median(ratios),
        low=min(ratios),
        high=max(ratios),
        pairs=pairs,
    )


def _seconds(work: Callable[[], None], repeats: int) -> float:
    """Processor seconds of this thread."""
    started = time.thread_time()
    for _ in range(repeats):
        work()
    return time.thread_time() - started
