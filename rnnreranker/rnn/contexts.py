"""s* of a batch of contexts."""

from __future__ import annotations

import functools
import itertools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from rnnreranker.base.command import cores, notice
from rnnreranker.base.errors import InputError, ParameterError
from rnnreranker.base.process.phases import phase
from rnnreranker.rnn import checks, dense, mixture, reference
from rnnreranker.rnn.params import RnnParams

CHUNK_BYTES = 1 << 21  # of matrices that are filled at once, at most: they stay in the cache
LARGEST = 1e38  # square of a vector's length: no inner product of two overflows
WIDEST = 1100  # elements of contexts that NumPy takes: it has some ten matrices of all pairs
LOADED, COMPILED = 300_000, 2_000_000  # pairs of elements that NumPy compares sooner than the kernel is there


# fill(part, gram, shift_free=False) fills the matrices, (C, M, S) float32, of a range of contexts; shift_free: see
# `reference.inner_products`
Fill = Callable[..., None]


def matrices(contexts: int, widest: int) -> np.ndarray:
    """(C, M, S) float32, all -inf: space for matrices of M elements, as the kernel reads 64 at a time."""
    return np.full((contexts, widest, (widest + 63) // 64 * 64 + 48), -np.inf, dtype=np.float32)


def list_lengths(sizes: np.ndarray, params: RnnParams) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(B,) int64 each: list entries, those that extend (-1 = none), those averaged."""
    distinct, which = np.unique(sizes, return_inverse=True)
    of_size = [
        (
            reference.list_length(m, params),
            reference.extension_columns(m, params) if params.tau > 0 else -1,
            reference.nearest_taken(m, params),
        )
        for m in distinct.tolist()
    ]
    lists, columns, nearest = np.array(of_size, dtype=np.int64).reshape(-1, 3)[which].T.copy()
    return lists, columns, nearest


class Engine(Protocol):
    """The module `dense` or `kernel`, with the same values.

    score(gram, sizes, lengths, columns, tops, setting, probes, out, problem, closest) fills `out` with the Jaccard
    similarities of probes, and `closest`, of contexts with m = sizes[c] >= 2.

    - gram: (C, M, S) float32, of `matrices`. The similarities of context c are gram[c, :m, :m], -inf for unknown pairs
      and behind them; a diagonal of inf means the highest of the others. Rows are left as lists are sorted by them.
    - lengths, columns, tops: (C,) int64, of `list_lengths`.
    - probes: (C, P) int64, elements; `Setting.by_products` fills all but the first.
    - out: (C, P, M) float64; unchanged where a probe is < 0 or >= m.
    - problem: (C,) float64, 0 on entry. NaN: the diagonal is NaN or too large; inf: a constant outweighs the
      differences; else the exponent of an exponential weight that would overflow.
    - closest: (C, M - 1, n) int32, for each candidate the n most similar others, ascending; -1 = none.

    smooth(scores, closest, share, out): see `dense.smooth`.

    known_pairs(near, similar, rows, query, sizes, gram) fills `gram` from a graph: near (C, N, K) uint32, similar (C,
    N, K) float32; rows: (C, N) int64; query: (C, N) float32, or (C, 0): the similarities of the first candidate in
    falling order. The diagonal is inf, or NaN if a similarity is not finite.
    """

    score: Callable[..., None]
    smooth: Callable[..., None]
    known_pairs: Callable[..., None]


_lock = threading.Lock()
_done = 0  # pairs of elements of all work so far


@functools.lru_cache(maxsize=1)
def compiles() -> bool:
    """Whether numba can compile; else a notice says why."""
    try:
        import numba

        if not getattr(numba.config, "DISABLE_JIT", 0):
            return True
        reason = "NUMBA_DISABLE_JIT switches numba off"
    except ImportError as error:
        reason = f"numba cannot be imported ({error})"
    notice(f"{reason}: similarities are computed with NumPy, 2 to 10 times slower")
    return False


@functools.lru_cache(maxsize=1)
def kernel() -> Engine:
    """The compiled engine; NumPy's if numba cannot compile."""
    if not compiles():
        return dense
    with _lock, phase("loading the kernel, which a first use on a machine compiles", "kernel"):
        from rnnreranker.rnn import kernel as compiled

        near, rows = np.zeros((1, 2, 1), dtype=np.uint32), np.zeros((1, 2), dtype=np.int64)

        def fill(part: slice, gram: np.ndarray, shift_free: bool = False) -> None:
            for query in (np.empty((1, 0), dtype=np.float32), np.ones((1, 2), dtype=np.float32)):
                compiled.known_pairs(near, near.astype(np.float32), rows, query, np.full(1, 3), gram)

        of = ContextBatch(np.full(1, 3), lambda engine: fill, largest=np.inf)
        similarities(of, RnnParams(), None, threads=1, engine=compiled)
        return compiled


def warm_up() -> None:
    """Load or compile the kernel now, before the first question of a service; results do not depend on it."""
    kernel()


def load_kept() -> None:
    """Load the kernel if its machine code is kept."""
    if kernel.cache_info().currsize or is_kept():
        kernel()


def engine_for(sizes: np.ndarray) -> Engine:
    """NumPy until loading the kernel pays."""
    global _done
    if kernel.cache_info().currsize:  # it is loaded
        return kernel()
    _done += int(np.square(sizes, dtype=np.int64).sum())
    small = int(sizes.max(initial=0)) <= WIDEST and _done <= (LOADED if is_kept() else COMPILED)
    return dense if small else kernel()


@functools.lru_cache(maxsize=1)
def is_kept() -> bool:
    """Whether numba has kept the machine code."""
    beside, named = Path(__file__).with_name("__pycache__"), os.environ.get("NUMBA_CACHE_DIR")
    of_user = os.path.join(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache"), "numba")
    folders = [*Path(named or of_user).glob("rnn_*"), *([] if named else [beside])]
    return any(any(folder.glob(f"kernel.score_{dense.kernel_sources()}-*.nbi")) for folder in folders)


class PlainNeighbours:
    """NumPy's engine without reciprocity."""

    score = staticmethod(functools.partial(dense.score, reciprocal=False))
    smooth, known_pairs = staticmethod(dense.smooth), staticmethod(dense.known_pairs)


@dataclass(frozen=True)
class ContextBatch:
    """sizes: (B,) int64, elements of each context, with the query; filler: called in every thread, returns what fills
    matrices; largest: the highest accepted diagonal; outweighs: see `dense.Setting`.
    """

    sizes: np.ndarray
    filler: Callable[[Engine], Fill]
    largest: float = LARGEST
    outweighs: float = np.inf

    @property
    def counts(self) -> np.ndarray:
        return self.sizes[:, None] - 1


@dataclass(frozen=True)
class JaccardScores:
    """jaccard: (B, P, M) float64; products: (B, M - 1) float64, similarities to the query as lists are sorted by them;
    probes: (B, P) int64; closest, problem: as in `Engine`.
    """

    jaccard: np.ndarray
    products: np.ndarray
    probes: np.ndarray
    closest: np.ndarray
    problem: np.ndarray


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
    """
    sizes = contexts.sizes
    batch, widest = len(sizes), max(2, int(sizes.max(initial=0)))
    engine = engine or engine_for(sizes)
    setting = dense.Setting.of(params, contexts.largest, contexts.outweighs, by_products)
    lengths = list_lengths(sizes, params)
    result = JaccardScores(
        jaccard=np.zeros((batch, probes.shape[1], widest)),
        products=np.zeros((batch, widest - 1)),
        probes=probes.copy(),
        closest=np.full((batch, widest - 1, lenders), -1, dtype=np.int32),
        problem=np.zeros(batch),
    )
    parallel = threads or cores()
    most = max(1, CHUNK_BYTES // matrices(1, widest).nbytes)
    chunk = -(-batch // (parallel * -(-batch // (parallel * most)))) if batch else 1  # as many for each thread
    starts = itertools.count(0, chunk)

    @np.errstate(all="ignore")  # infinities are seen in the result
    def work() -> None:
        fill, room, held = contexts.filler(engine), matrices(chunk, widest), np.zeros(chunk, dtype=np.int64)
        while (start := next(starts)) < batch:  # each thread takes the next chunk
            part = slice(start, min(start + chunk, batch))
            gram = room[: part.stop - start]
            for c in np.flatnonzero(held[: len(gram)] > sizes[part]):
                gram[c, :, sizes[start + c] :] = -np.inf
            held[: len(gram)] = sizes[part]
            fill(part, gram)
            run(part, gram, setting)
            if contexts.outweighs < np.inf:
                for b in part.start + np.flatnonzero(result.problem[part] == np.inf):
                    one, own = slice(b, b + 1), gram[b - start : b - start + 1]
                    result.problem[one] = 0.0
                    fill(one, own, shift_free=True)
                    run(one, own, setting._replace(outweighs=np.inf))

    def run(part: slice, gram: np.ndarray, setting: dense.Setting) -> None:
        lists, columns, nearest = (one[part] for one in lengths)
        given = sizes[part], lists, columns, nearest, setting, result.probes[part]
        engine.score(gram, *given, result.jaccard[part], result.problem[part], result.closest[part])
        result.products[part] = gram[:, 0, 1:widest]

    checks.in_threads(work, min(parallel, -(-batch // chunk)))
    return result


@np.errstate(all="ignore")  # what is at padding is not used
def similarities(
    contexts: ContextBatch,
    params: RnnParams,
    base: np.ndarray | None,
    *,
    threads: int | None = None,
    engine: Engine | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """s* of the candidates, (B, N) float64, undefined at padding, and problems; base: (B, N) or wider, None =
    similarities to the query.
    """
    batch, widest = len(contexts.sizes), max(2, int(contexts.sizes.max(initial=0)))
    engine, base = engine or engine_for(contexts.sizes), None if base is None else base[:, : widest - 1]
    if params.scale == "none":  # eq. 1
        result = scored(contexts, params, np.zeros((batch, 1), dtype=np.int64), threads=threads, engine=engine)
        return params.lam * result.products + (1.0 - params.lam) * result.jaccard[:, 0, 1:], result.problem
    probes = np.tile(np.arange(min(params.probes, widest)), (batch, 1))
    probes[probes > contexts.counts] = -1
    by_products = base is None and params.probes > 1
    lenders = min(params.smoothed_over, widest - 2)
    result = scored(contexts, params, probes, lenders=lenders, by_products=by_products, threads=threads, engine=engine)
    near = mixture.mean_over(result.probes, result.jaccard, contexts.counts)
    products = result.products if params.query_weight or base is None else None
    order = mixture.by_products(result.products, contexts.counts) if base is None and params.rank_weight else None
    known = mixture.known(products, base, order, contexts.counts, params)
    mixed = params.lam * known + (1.0 - params.lam) * near
    if not lenders:
        return mixed, result.problem
    smoothed = np.empty(mixed.shape)
    engine.smooth(mixed, result.closest, params.smoothing, smoothed)
    return smoothed, result.problem


def check_problem(problem: np.ndarray, broken: Callable[[int], str]) -> None:
    """Raise for the first row with a problem, (B,); broken: its text."""
    for row in np.flatnonzero(problem)[:1].tolist():
        if np.isnan(problem[row]):
            raise InputError(f"row {row} of the batch: {broken(row)}")
        raise ParameterError(f"row {row} of the batch: {reference.too_large(problem[row])}")
