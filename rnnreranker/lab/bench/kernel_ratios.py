"""The similarity kernel beside what it is compared with, in pairs, by the processor time of one thread."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.lab.bench.summaries import Ratio, cells, in_pairs, judged, slope
from rnnreranker.lab.bench.synthetic import KINDS, contexts
from rnnreranker.rnn import RnnParams, jaccard_similarity, rnn_similarity

ELEMENTS = 16_000  # candidates of a batch
PARAMS = dataclasses.replace(RnnParams.preset("vectors"), k=21)
BOUNDS = {60: (1.8, 1.6), 200: (1.7, 1.45), 1000: (1.35, 1.2)}  # N: times the Gram product, bound and aim
SCALE_BOUND, PROBES_BOUND, FIRST_STAGE_BOUND = 1.1, 1.4, 1.1


def kernel_time(candidates: int, dimension: int, params: RnnParams, pairs: int, kind: str = "clustered") -> Ratio:
    """Seconds a query of the product X Xᵀ alone (base) and of `rnn_similarity`, everything included (other).

    The m = N + 1 vectors are multiplied in float32, by numpy's syrk; kind: of the vectors, see `synthetic.contexts`.
    """
    vectors = _batch(kind, candidates, dimension)
    return a_query((gram(vectors), _similarity(vectors, params)), len(vectors), pairs)


def gram(vectors: np.ndarray) -> Callable[[], None]:
    """The product X Xᵀ of every context of a batch, (B, m, d) float32."""
    product = np.empty((vectors.shape[1], vectors.shape[1]), dtype=np.float32)

    def work() -> None:
        for context in vectors:
            np.matmul(context, context.T, out=product)

    return work


def kernel(sizes: tuple[int, ...], dimension: int, pairs: int) -> list[dict[str, Any]]:
    """The kernel against its Gram product: every N, tau, scale and kind of vectors, with bound and aim."""
    rows = []
    for n in sizes:
        for kind in KINDS:
            for tau in (0.0, 0.5):
                for scale in ("minmax", "none"):
                    params = dataclasses.replace(PARAMS, tau=tau, scale=scale)
                    ratio = kernel_time(n, dimension, params, pairs, kind)
                    row = {"N": n, "d": dimension, "tau": tau, "scale": scale, "vectors": kind}
                    rows.append(judged(row | cells(ratio, "gram_us", "kernel_us"), "ratio", *BOUNDS.get(n, (None,))))
    return rows


def scale(sizes: tuple[int, ...], dimension: int, pairs: int) -> list[dict[str, Any]]:
    """scale "minmax", the default, against "none"."""
    rows = []
    for n in sizes:
        vectors = _batch("clustered", n, dimension)
        for tau in (0.0, 0.5):
            params = dataclasses.replace(PARAMS, tau=tau)
            works = [_similarity(vectors, dataclasses.replace(params, scale=name)) for name in ("none", "minmax")]
            ratio = a_query(works, len(vectors), pairs)
            row = {"N": n, "d": dimension, "tau": tau} | cells(ratio, "none_us", "minmax_us")
            rows.append(judged(row, "ratio", SCALE_BOUND))
    return rows


def first_stage(sizes: tuple[int, ...], dimension: int, pairs: int) -> list[dict[str, Any]]:
    """The default, with the scores of a run, against the preset "vectors", which asks nothing of the run."""
    rows = []
    for n in sizes:
        vectors = _batch("clustered", n, dimension)
        base = -np.sort(-np.random.default_rng(n).standard_normal((len(vectors), n)))
        works = [_similarity(vectors, RnnParams.preset("vectors")), _similarity(vectors, RnnParams(), base=base)]
        row = {"N": n, "d": dimension} | cells(a_query(works, len(vectors), pairs), "vectors_us", "default_us")
        rows.append(judged(row, "ratio", FIRST_STAGE_BOUND))
    return rows


def probes(candidates: int, dimension: int, pairs: int) -> list[dict[str, Any]]:
    """Ten probes of `jaccard_similarity` against one."""
    vectors = _batch("clustered", candidates, dimension)
    works = [
        partial(jaccard_similarity, vectors, PARAMS, probes=rows, threads=1)
        for rows in ((0,), tuple(range(min(10, candidates + 1))))
    ]
    ratio = a_query(works, len(vectors), pairs)
    row = {"N": candidates, "d": dimension, "tau": PARAMS.tau} | cells(ratio, "one_us", "ten_us")
    return [judged(row, "ratio", PROBES_BOUND if candidates >= 1000 else None)]


def dtype(sizes: tuple[int, ...], dimension: int, pairs: int) -> list[dict[str, Any]]:
    """Vectors of float16, which are turned to float32, against float32."""
    rows = []
    for n in sizes:
        vectors = _batch("clustered", n, dimension)
        works = [_similarity(typed, PARAMS) for typed in (vectors, vectors.astype(np.float16))]
        rows.append({"N": n, "d": dimension} | cells(a_query(works, len(vectors), pairs), "float32_us", "float16_us"))
    return rows


def threads(sizes: tuple[int, ...], dimension: int, pairs: int) -> list[dict[str, Any]]:
    """Two threads against one, by elapsed time: below 1 is faster, .5 is the most that two cores can give."""
    rows = []
    for n in sizes:
        vectors = _batch("clustered", n, dimension)
        works = [_similarity(vectors, PARAMS, count) for count in (1, 2)]
        ratio = a_query(works, len(vectors), pairs, time.perf_counter)
        rows.append({"N": n, "d": dimension} | cells(ratio, "one_us", "two_us"))
    return rows


def growth(sizes: tuple[int, ...], dimension: int, pairs: int) -> list[dict[str, Any]]:
    """Cost against N, and in a last row the slopes of the lines through the logarithms, of product and kernel."""
    ratios = [kernel_time(n, dimension, PARAMS, pairs) for n in sizes]
    rows = [(str(n), one.base * 1e6, one.other * 1e6, one.ratio) for n, one in zip(sizes, ratios, strict=True)]
    power = [slope(sizes, [getattr(one, name) for one in ratios]) for name in ("base", "other")]
    return [
        {"N": n, "d": dimension, "gram_us": base, "kernel_us": other, "ratio": ratio}
        for n, base, other, ratio in [*rows, ("slope", *power, None)]
    ]


def _batch(kind: str, candidates: int, dimension: int) -> np.ndarray:
    return contexts(kind, max(1, min(256, ELEMENTS // candidates)), candidates, dimension)


def _similarity(
    vectors: np.ndarray,
    params: RnnParams,
    count: int = 1,
    base: np.ndarray | None = None,
) -> Callable[[], object]:
    queries, candidates = np.ascontiguousarray(vectors[:, 0]), np.ascontiguousarray(vectors[:, 1:])
    return lambda: rnn_similarity(queries, candidates, params, base=base, threads=count)


def a_query(
    works: Sequence[Callable[[], object]], batch: int, pairs: int, clock: Callable[[], float] = time.thread_time
) -> Ratio:
    """`in_pairs` of two works over a batch of queries, in seconds a query; products take one thread."""
    base, other = works
    with one_blas_thread():
        ratio = in_pairs(base, other, pairs, clock)
    return dataclasses.replace(ratio, base=ratio.base / batch, other=ratio.other / batch)
