"""The compiled kernel, its NumPy form and the loops of the reference: the same values for any input.

A result must meet the reference at relative 1e-5 and absolute 1e-6 of the largest value. Near ties are not exempt: the
reference multiplies with the same BLAS call, and sums of weights have the same order. Both engines give the same bytes.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import ROOT
from refusals import refusal

from rnnreranker import InputError, RnnParams, jaccard_similarity, rnn_similarity
from rnnreranker.base.jobs import one_blas_thread
from rnnreranker.rnn import api, contexts, dense, reference
from rnnreranker.rnn.api import given_similarity
from rnnreranker.rnn.graph import graph_jaccard, graph_similarity, probe_similarities

kernel = pytest.importorskip("rnnreranker.rnn.kernel", reason="numba is not installed")
ENGINES = {"kernel": kernel, "dense": dense}
CASES = int(os.environ.get("RNNRERANKER_FUZZ", "200"))  # of each test; a failing one says its seed
SIZES = [1, 2, 3, 5, 9, 17, 31, 33, 60, 62, 63, 64, 65, 130]  # candidates, around what the kernel reads at once


def by_each(monkeypatch: pytest.MonkeyPatch, work: Callable[[], np.ndarray]) -> tuple[np.ndarray | str, ...]:
    """What both engines give, or the error."""
    found: list[np.ndarray | str] = []
    for engine in ENGINES.values():
        for module in (contexts, api):
            monkeypatch.setattr(module, "engine_for", lambda sizes, engine=engine: engine)
        try:
            found.append(work())
        except InputError as error:
            found.append(str(error))
    return tuple(found)


def params_of(rng: np.random.Generator, **fixed: Any) -> RnnParams:
    choices: dict[str, list[Any]] = {
        "k": [1, 2, 5, 10, 21, 40, 200],
        "k_exp": [1, 2, 3, 6, 50],
        "tau": [0.0, 0.1, 0.5, 0.9, 1.0],
        "lam": [0.0, 0.451, 1.0],
        "weight": ["linear", "exp", "binary"],
        "weight_scale": [0.1, 2.4],
        "normalize": [None, None, "max", "mean"],
        "scale": ["minmax", "minmax", "none"],
        "variant": ["authors", "paper"],
        "rank_weight": [0.0, 1.0],
        "run_weight": [0.0, 1.0, 3.0],
        "probes": [1, 2, 3, 30],
        "smoothing": [0.0, 0.25, 1.0],
        "smoothing_neighbours": [1, 2, 5, 15, 60, 200],
    }
    values = {name: options[rng.integers(len(options))] for name, options in choices.items()}
    return RnnParams(**(values | fixed))


def vectors_of(rng: np.random.Generator, batch: int, m: int, d: int) -> np.ndarray:
    """(B, m, d) of some kind, type and layout."""
    normal = rng.standard_normal((batch, m, d))
    integers = rng.integers(-2, 3, normal.shape).astype(float)
    short = normal + 1.0
    short[rng.random((batch, m)) < 0.4] *= 0.05  # they are missing from their own lists
    kinds = [
        normal,
        normal * 0.5 + 1.0,
        integers,
        normal[:, rng.integers(0, m, m)],  # duplicates
        np.tile(integers[:, :1], (1, m, 1)),
        integers * (rng.random((batch, m, 1)) < 0.6),  # some are zero
        np.eye(d)[rng.integers(0, d, (batch, m))],
        normal * 1e-41,
        normal * 10.0 ** rng.integers(-6, 7, (batch, m, 1)),
        normal * 0.01 + 10.0,  # a constant outweighs the differences
        short,
    ]
    vectors = kinds[rng.integers(len(kinds))]
    vectors = vectors * 10.0 ** rng.choice([0, 0, 0, -18, 3, 8]) if rng.random() < 0.3 else vectors
    types: list[Any] = [np.float32, np.float32, np.float64, np.float16 if np.abs(vectors).max() < 6e4 else ">f4"]
    typed = vectors.astype(types[rng.integers(len(types))])
    layouts = (typed, np.asfortranarray(typed), np.repeat(typed, 2, axis=2)[:, :, ::2])
    return layouts[rng.integers(len(layouts))]


def loops(context: np.ndarray, params: RnnParams, base: np.ndarray | None, probes: list[int]) -> Any:
    """s* and Jaccard similarities of one context by the reference, or None where it must be refused."""
    with np.errstate(all="ignore"):
        raw = reference.inner_products(context, params.scale == "minmax")
        if not (raw.diagonal() <= 1e38).all():  # NaN too
            return None
    try:
        done = reference.steps(context, params)
    except InputError:
        return None
    return reference.parts(done, params, base).scores, np.stack([reference.jaccard(done.expanded, p) for p in probes])


def agree(found: np.ndarray, expected: np.ndarray) -> None:
    largest = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * largest)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("first", range(0, CASES, 100))
def test_vectors(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same bytes by both engines, in any batch, on any threads; padding is never read; what is broken is refused."""
    for seed in range(first, min(first + 100, CASES)):
        rng = np.random.default_rng(seed)
        batch, n = int(rng.integers(0, 4)), int(rng.choice(SIZES))
        vectors, params = vectors_of(rng, max(batch, 1), n + 1, int(rng.integers(1, 25)))[:batch], params_of(rng)
        lengths = rng.integers(0, n + 1, batch) if rng.random() < 0.5 else np.full(batch, n)
        base = -np.sort(-np.round(rng.standard_normal((batch, n)), 1), axis=1) if rng.random() < 0.5 else None
        probes = rng.integers(0, n + 1, 3).tolist()
        if batch and rng.random() < 0.1:
            vectors = vectors.astype(np.float64)
            vectors[0, rng.integers(n + 1), 0] = rng.choice([np.nan, np.inf, -np.inf, 1e25, 1e39])
        with np.errstate(all="ignore"):
            alone = [row[: length + 1].astype(np.float32) for row, length in zip(vectors, lengths, strict=True)]
        padded = vectors.copy()
        padded[np.arange(n + 1) > lengths[:, None]] = 1e30 if vectors.dtype == np.float32 else 0.0
        of = {"lengths": lengths, "threads": int(rng.integers(1, 4))}
        queries, candidates = padded[:, 0], padded[:, 1:]
        scores = by_each(monkeypatch, lambda: rnn_similarity(queries, candidates, params, base=base, **of))  # noqa: B023
        jaccard = by_each(monkeypatch, lambda: jaccard_similarity(padded, params, probes=probes, **of))  # noqa: B023
        with one_blas_thread():
            expected = [
                loops(one, params, None if base is None else base[row, : len(one) - 1], list(range(len(one))))
                if len(one) > 1
                else ()
                for row, one in enumerate(alone)
            ]
        if any(one is None for one in expected):
            for said in (*scores, *jaccard):
                assert re.match(r"row .*\Z", str(said)), (seed, params, said)
            continue
        for ours, other in (scores, jaccard):
            assert ours.tobytes() == other.tobytes(), (seed, params, ours)  # type: ignore[union-attr]
        for row, (one, length) in enumerate(zip(expected, lengths.tolist(), strict=True)):
            assert (scores[0][row, length:] == -np.inf).all()
            assert (jaccard[0][row, :, length + 1 if length else 0 :] == -np.inf).all()
            if not length:
                continue
            for place, probe in enumerate(probes):
                wanted = one[1][probe] if probe <= length else np.full(length + 1, -np.inf)
                agree(jaccard[0][row, place, : length + 1], wanted)
            agree(scores[0][row, :length], one[0])
            single, known = slice(row, row + 1), None if base is None else base[row : row + 1, :length]
            again = rnn_similarity(vectors[single, 0], vectors[single, 1 : length + 1], params, base=known)
            assert again[0].tobytes() == scores[0][row, :length].tobytes(), (seed, params)


@pytest.mark.long
@pytest.mark.parametrize("m", [255, 257, 1001])
def test_wide_contexts(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(m)
    tied = rng.integers(-1, 2, (1, m, 3)).astype(np.float32)  # lists are cut among equal similarities
    for vectors in (rng.standard_normal((1, m, 8), dtype=np.float32), tied, np.abs(tied)):
        for values in ({}, {"k": 21, "scale": "none"}, {"k": 100, "tau": 0.1, "weight": "exp", "weight_scale": 0.5}):
            params = RnnParams(**values)  # type: ignore[arg-type]
            for work in (
                lambda: rnn_similarity(vectors[:, 0], vectors[:, 1:], params),  # noqa: B023
                lambda: jaccard_similarity(vectors, params, probes=(0, m - 1)),  # noqa: B023
            ):
                np.testing.assert_array_equal(*by_each(monkeypatch, work))


def test_lists_are_cut_between_neighbouring_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.ones((1, 60, 2), dtype=np.float32)
    vectors[0, 1:, 0] += np.float32(2**-23) * (np.arange(59) // 2)  # products with the query 1 + i ulp, two of each
    for k in (1, 2, 7, 25, 58):
        params = RnnParams(k=k, scale="none")
        expected = reference.jaccard_similarity(vectors[0], params)
        for found in by_each(monkeypatch, lambda: jaccard_similarity(vectors, params)):  # noqa: B023
            agree(found[0], expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("params", [RnnParams(), RnnParams(k=3, scale="none", tau=0.0)])
def test_similarities_that_are_given_count_as_products(params: RnnParams) -> None:
    vectors = np.random.default_rng(2).standard_normal((31, 12)).astype(np.float32)
    for base in (None, np.sort(np.random.default_rng(3).standard_normal(30))[::-1]):
        known = None if base is None else base[None]
        expected = rnn_similarity(vectors[:1], vectors[None, 1:], params, base=known)
        np.testing.assert_array_equal(given_similarity(vectors @ vectors.T, params, base=base), expected[0])
    for wrong in (np.ones((3, 4)), np.full((3, 3), np.nan)):
        with refusal(r"^similarities has shape .*expected \(m, m\) finite ones"):
            given_similarity(wrong, params)


NO_DOCUMENT = 2**32 - 1  # what -1 is in uint32
WEIGHTS: tuple[Callable[[np.random.Generator, tuple[int, ...]], np.ndarray], ...] = (
    lambda rng, shape: np.full(shape, 0.5),
    lambda rng, shape: rng.choice([0.0, -0.0], size=shape),
    lambda rng, shape: rng.choice([0.0, -0.0, -1.0, 1.0, 0.5], size=shape),
    lambda rng, shape: -rng.random(shape),
    lambda rng, shape: rng.integers(-1023, 1024, size=shape) * 2.0**-24,  # subnormal
    lambda rng, shape: rng.choice([65504.0, -65504.0, 1.0, 0.0], size=shape),
    lambda rng, shape: np.round(rng.normal(size=shape), 1),
)
GRAPHS = [  # documents, neighbours, candidates: rows name their own document, one twice, or more than there are
    (1, 1, 1), (2, 3, 2), (5, 40, 5), (17, 1, 16), (33, 16, 31), (70, 7, 63), (70, 20, 65), (90, 130, 66), (90, 2, 90),
]  # fmt: skip


@pytest.mark.parametrize("shape", GRAPHS, ids=str)
def test_graphs(shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    documents, k, width = shape
    for number in range(4 * len(WEIGHTS)):
        rng, weigh = np.random.default_rng([number, *shape]), WEIGHTS[number % len(WEIGHTS)]
        free = {"scale": "minmax"} if number % 3 else {"normalize": None}
        params = params_of(rng, rank_weight=1.0, **free)
        edges = rng.integers(0, documents, size=(documents, k)).astype(np.uint32)
        edges[rng.random(edges.shape) < 0.1] = NO_DOCUMENT
        weights, rows = weigh(rng, edges.shape).astype(np.float16), rng.permutation(documents)[:width][None]
        query = None if number % 2 and params.scale == "minmax" else weigh(rng, rows.shape).astype(np.float32)
        base, own = -np.sort(-rng.normal(size=rows.shape), axis=1), None if query is None else query[0]
        known = reference.known_similarities(edges, weights, rows[0].tolist(), own)
        found = by_each(
            monkeypatch,
            lambda: graph_similarity(edges, weights, rows, params, query=query, base=base),  # noqa: B023
        )
        try:
            done = reference.graph_steps(known, params)
        except InputError:
            assert all("weight exp: the largest" in str(said) for said in found), (shape, number)
            continue
        used = params if query is not None else params.without_query()
        agree(found[0][0], reference.parts(done, used, base[0]).scores)  # type: ignore[arg-type]
        np.testing.assert_array_equal(*found)
        jaccard = graph_jaccard(edges, weights, rows, params, probes=np.array([[0], [width], [-1]]).T, query=query)
        wanted = [reference.jaccard(done.expanded, probe) for probe in (0, width)]
        agree(jaccard[0], np.stack([*wanted, np.zeros(width + 1)]))
        whole = reference.known_similarities(edges, weights, rows[0])[1:, 1:]
        low, high = (whole[whole > -np.inf].min(initial=65504), whole.max()) if (whole > -np.inf).any() else (0, 0)
        whole = np.where(np.eye(width, dtype=bool), high, np.maximum(whole, np.float32(low)))
        of_probes = probe_similarities(edges, weights, rows, np.array([[1, 0, width]]), np.array([width]))
        np.testing.assert_array_equal(of_probes[0], [whole[0], np.zeros(width), whole[width - 1]])


def test_rows_of_a_graph_in_any_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    edges = rng.integers(0, 200, (200, 8)).astype(np.uint32)
    weights, rows = rng.random(edges.shape).astype(np.float16), np.stack([rng.permutation(200)[:30] for _ in range(23)])
    query, base, lengths = rng.random(rows.shape), -np.sort(-rng.random(rows.shape), axis=1), rng.integers(0, 31, 23)
    arguments = {"query": query, "base": base, "lengths": lengths}
    whole = graph_similarity(edges, weights, rows, RnnParams(), **arguments)  # type: ignore[arg-type]
    monkeypatch.setattr(contexts, "CHUNK_BYTES", 1)
    again = graph_similarity(edges, weights, rows, RnnParams(), threads=3, **arguments)  # type: ignore[arg-type]
    assert again.tobytes() == whole.tobytes()
    for b, n in enumerate(lengths.tolist()):
        assert (whole[b, n:] == -np.inf).all()
        one = slice(b, b + 1)
        if n:
            alone = graph_similarity(
                edges, weights, rows[one, :n], RnnParams(), query=query[one, :n], base=base[one, :n]
            )
            assert alone[0].tobytes() == whole[b, :n].tobytes()


def test_small_work_is_done_by_numpy_and_more_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[bool] = []
    monkeypatch.setattr(contexts, "kernel", functools.lru_cache(lambda: loads.append(True) or kernel))
    monkeypatch.setattr(contexts, "_done", 0)
    assert contexts.engine_for(np.zeros(0, dtype=np.int64)) is dense
    for _ in range(contexts.FIRST // 500**2):
        assert contexts.engine_for(np.array([500])) is dense
    assert contexts.engine_for(np.array([500])) is kernel  # small work adds up
    assert contexts.engine_for(np.array([2])) is kernel
    assert loads == [True]
    contexts.kernel.cache_clear()
    monkeypatch.setattr(contexts, "_done", 0)
    assert contexts.engine_for(np.array([contexts.WIDEST + 1])) is kernel


def test_a_machine_without_a_writable_folder_compiles_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def njit(signature: str, cache: bool = False, **options: object) -> object:
        asked.append(cache)
        if cache:  # what numba says
            raise RuntimeError("cannot cache function: no locator available for file")
        return lambda function: function

    monkeypatch.setattr("numba.njit", njit)
    assert kernel.kept("void()")(by_each) is by_each
    assert asked == [True, False]


def in_process(program: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", **variables}
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )


def test_without_numba_the_results_are_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    queries, candidates = rng.standard_normal((3, 8)), rng.standard_normal((3, 20, 8))
    np.savez(tmp_path / "in.npz", queries=queries, candidates=candidates)
    use = (
        "import numpy as np, rnnreranker as r; r.warm_up(); z = np.load('in.npz')\n"
        "np.save('out.npy', r.rnn_similarity(z['queries'], z['candidates'], r.RnnParams()))\n"
    )
    said = [
        in_process("import sys; sys.modules['numba'] = None\n" + use, tmp_path).stderr,
        in_process(use, tmp_path, NUMBA_DISABLE_JIT="1").stderr,
    ]
    assert "numba cannot be used" in said[0]
    assert "NUMBA_DISABLE_JIT switches numba off" in said[1]
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), rnn_similarity(queries, candidates, RnnParams()))


@pytest.mark.slow
def test_a_second_process_does_not_compile(tmp_path: Path) -> None:
    program = (
        "import rnnreranker as r; r.warm_up(); from rnnreranker.rnn import kernel\n"
        "print(sum(kernel.score.stats.cache_misses.values()))"
    )
    said = [in_process(program, tmp_path, NUMBA_CACHE_DIR=str(tmp_path)).stdout.split() for _ in range(2)]
    assert said == [["1"], ["0"]]


@pytest.mark.parametrize("threads", [1, 2])
def test_numpys_blas_has_one_thread_while_contexts_are_scored(threads: int) -> None:
    from threadpoolctl import threadpool_info

    seen: list[int] = []

    def fill(part: slice, gram: np.ndarray, shift_free: bool) -> None:
        seen.extend(one["num_threads"] for one in threadpool_info() if "numpy" in one["filepath"])
        gram[:] = 1.0

    of = contexts.ContextBatch(np.full(600, 20), fill, str)
    contexts.scored(of, RnnParams(), np.zeros((600, 1), dtype=np.int64), kernel, threads=threads)
    if not seen:
        pytest.skip("NumPy does not bring a BLAS of its own here")
    assert set(seen) == {1}
