"""The compiled kernel and its numpy stand-in against the reference, over every setting and awkward context."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rnnreranker.rnn import RnnParams, chunks, reference, reference_scores, rnn_similarity
from rnnreranker.rnn.engines import numpy as fallback
from rnnreranker.rnn.engines.setting import EngineSetting
from rnnreranker.rnn.similarity import jaccard_similarity, similarity_by

kernel = pytest.importorskip(
    "rnnreranker.rnn.engines.kernel", reason="numba is not installed: there is no compiled kernel"
)
compiled = pytest.importorskip("rnnreranker.rnn.engines.compiled")
ENGINES = {"kernel": kernel.score_contexts, "fallback": fallback.score_contexts}
SIZES = [
    (1, 1, 0.5, "authors"),
    (3, 12, 0.5, "paper"),
    (21, 3, 0.0, "authors"),
    (8, 4, 0.9, "authors"),
    (64, 70, 0.5, "authors"),
    (9, 70, 0.5, "paper"),
    (60, 90, 0.5, "paper"),
    (200, 5, 0.5, "paper"),
]
ROOT = Path(__file__).resolve().parent.parent


def context(kind: str, m: int, seed: int = 0) -> np.ndarray:
    """(m, 6) float32 vectors with small integers where ties must be exact."""
    rng = np.random.default_rng((seed, m))
    vectors = rng.standard_normal((m, 6)).astype(np.float32)
    if kind == "close":  # as from an encoder: all similarities positive, some neighbourhoods
        vectors = vectors * 0.5 + 1.0
    elif kind == "tied":  # inner products of small integers are exact: ties everywhere
        vectors = rng.integers(-1, 2, (m, 6)).astype(np.float32)
        vectors[:, 0] = 2.0
    elif kind == "cancelling":  # sums of weights that are exactly 0
        vectors = rng.integers(-1, 2, (m, 3)).astype(np.float32)
    elif kind == "duplicates":
        vectors[m // 2 :] = vectors[: m - m // 2]
    elif kind == "short":  # vectors absent from their own lists
        vectors = vectors + 1.0
        vectors[rng.random(m) < 0.4] *= 0.05
    elif kind == "grid":  # similarities 0 and 1 off the diagonal, 2 on it: min-max changes the diagonal alone
        vectors = np.zeros((m, m + 1), dtype=np.float32)
        vectors[np.arange(m), np.arange(m)] = vectors[np.arange(m), np.arange(m) + 1] = 1.0
    elif kind == "constant":
        vectors[:] = 1.0
    elif kind == "zero":
        vectors[:] = 0.0
    return vectors


def overlaps(engine: str, vectors: np.ndarray, params: RnnParams, probes: list[int]) -> np.ndarray:
    """(len(probes), m): the Jaccard similarities that an engine gives."""
    sizes, out, problem = np.array([len(vectors)]), np.full((1, len(probes), len(vectors)), -np.inf), np.zeros(1)
    gram = reference.inner_products(vectors, shift_free=params.scale == "minmax").reshape(1, -1)
    with np.errstate(all="ignore"):
        ENGINES[engine](gram, sizes, EngineSetting.of(params, sizes), np.array([probes]), out, problem)
    assert problem[0] == 0
    return out[0]


def check_engine(engine: str, vectors: np.ndarray, params: RnnParams) -> None:
    """Both results of an engine against the reference, for the query and two more probes, with a run and without."""
    probes = sorted({0, 1, len(vectors) - 1})
    close = {"rtol": 1e-5, "atol": 1e-6, "err_msg": str(params)}
    expected = reference.jaccard_similarity(vectors, params, probes)
    np.testing.assert_allclose(overlaps(engine, vectors, params, probes), expected, **close)
    base = np.round(np.random.default_rng(len(vectors)).standard_normal(len(vectors) - 1), 1)  # some are equal
    for known in (None, base):
        batch = None if known is None else known[None]
        found = similarity_by(ENGINES[engine], vectors[None, 0], vectors[None, 1:], params, batch)[0]
        np.testing.assert_allclose(
            found, reference_scores.rnn_similarity(vectors[0], vectors[1:], params, known), **close
        )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "kind", ["close", "mixed signs", "tied", "cancelling", "duplicates", "short", "grid", "constant", "zero"]
)
def test_every_setting(engine: str, kind: str) -> None:
    settings = itertools.product(
        ["authors", "paper"], ["linear", "exp", "binary"], [None, "max", "mean"], ["minmax", "none"], [0.0, 0.3, 1.0]
    )
    for seed, (variant, weight, normalize, scale, tau) in enumerate(settings):
        params = RnnParams(
            k=5,
            tau=tau,
            variant=variant,
            weight=weight,
            weight_scale=0.5,
            normalize=normalize,
            scale=scale,
            probes=1 + seed % 4,
            rank_weight=seed % 3,
            query_weight=0.5 * (seed % 2),
            rank_constant=1.0 + seed,
        )
        vectors = context(kind, 17, seed)
        largest = reference.similarities(reference.inner_products(vectors), params)[1].max()
        if weight == "exp" and params.weight_scale * largest > reference.EXPONENT_LIMIT:
            params = dataclasses.replace(params, normalize="max")
        check_engine(engine, vectors, params)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scale", ["minmax", "none"])
@pytest.mark.parametrize("m", [2, 3, 4, 9, 63, 64, 65, 130])
@pytest.mark.long
def test_sizes_around_k_and_around_machine_words(engine: str, scale: str, m: int) -> None:
    for k, k_exp, tau, variant in SIZES:
        params = RnnParams(k=k, k_exp=k_exp, tau=tau, variant=variant, scale=scale)
        for kind in ("close", "tied", "mixed signs"):
            check_engine(engine, context(kind, m, k), params)


@pytest.mark.parametrize("engine", ENGINES)
def test_bounds_between_similarities_that_are_neighbouring_floats(engine: str) -> None:
    vectors = np.zeros((12, 2), dtype=np.float32)
    vectors[:, 0] = 1.0
    vectors[1:, 1] = np.float32(1.0)
    for i in range(1, 12):  # inner products with the query 1 + i ulp, two of each
        vectors[i, 0] = np.float32(1.0) + np.float32(2**-23) * np.float32(i // 2)
    for k in range(1, 12):
        check_engine(engine, vectors, RnnParams(k=k, scale="none"))


@pytest.mark.parametrize("kind", ["close", "mixed signs"])
@pytest.mark.parametrize("scale", ["minmax", "none"])
def test_a_thousand_candidates(kind: str, scale: str) -> None:
    vectors, params = context(kind, 1001), RnnParams(k=21, scale=scale)
    ours, other = (overlaps(engine, vectors, params, [0, 7]) for engine in ENGINES)
    np.testing.assert_array_equal(ours, other)


def test_public_functions_use_the_kernel_when_it_is_there() -> None:
    assert chunks.ENGINES.now() is kernel.score_contexts
    assert chunks.ENGINES.for_work(np.array([2])) is kernel.score_contexts


def test_without_numba_the_results_are_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    queries, candidates = rng.standard_normal((3, 8)), rng.standard_normal((3, 20, 8))
    np.savez(tmp_path / "in.npz", queries=queries, candidates=candidates)
    program = (
        "import sys, numpy as np; sys.modules['numba'] = None\n"
        "from rnnreranker.rnn import RnnParams, chunks, rnn_similarity\n"
        "chunks.ENGINES.now()\n"
        "z = np.load('in.npz'); np.save('out.npy', rnn_similarity(z['queries'], z['candidates'], RnnParams()))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert "numba cannot be imported" in ran.stderr
    expected = rnn_similarity(queries, candidates, RnnParams())
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


@pytest.mark.parametrize("m", [5, 70])
def test_probes_behind_a_short_row_and_padding(m: int) -> None:
    vectors = np.stack([context("close", m), context("tied", m)])
    lengths = np.array([m - 1, 3])
    vectors[1, 4:] = np.nan
    got = jaccard_similarity(vectors, RnnParams(k=3), probes=[0, 2, m - 1], lengths=lengths)
    whole = jaccard_similarity(vectors[1:, :4], RnnParams(k=3), probes=[0, 2])
    np.testing.assert_array_equal(got[1, :2, :4], whole[0])
    assert (got[1, :, 4:] == -np.inf).all()
    assert (got[1, 2] == -np.inf).all()
    assert np.isfinite(got[0]).all()


def test_a_machine_without_a_writable_folder_compiles_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def njit(cache: bool = False, **options: object) -> object:
        asked.append(cache)
        if cache:  # what numba says
            raise RuntimeError("cannot cache function: no locator available for file")
        return lambda function: function

    monkeypatch.setattr(compiled.numba, "njit", njit)
    assert compiled.kept(len) is len
    assert asked == [True, False]


@pytest.mark.slow
def test_a_second_process_does_not_compile(tmp_path: Path) -> None:
    program = (
        "import numpy as np\n"
        "from rnnreranker.rnn import RnnParams, chunks, rnn_similarity\n"
        "from rnnreranker.rnn.engines import kernel\n"
        "chunks.ENGINES.now()\n"
        "rnn_similarity(np.ones((1, 2)), np.ones((1, 3, 2)), RnnParams())\n"
        "print(sum(kernel._score_chunk.stats.cache_misses.values()))\n"
    )
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    for misses in ("1", "0"):
        ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert ran.stdout.strip() == misses, ran.stderr


def test_the_machine_code_is_filed_under_all_its_sources() -> None:
    folder = Path(compiled.__file__).parents[1]
    files = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.py")}
    with_numba = {name for name, text in files.items() if "rnn.engines.compiled import" in text}
    assert with_numba | {"engines/compiled.py"} == set(compiled.SOURCES)


@pytest.mark.parametrize("threads", [1, 2])
def test_numpys_blas_has_one_thread_while_contexts_are_scored(threads: int) -> None:
    from threadpoolctl import threadpool_info

    seen: list[int] = []

    def look(*_: object) -> None:
        numpys = [library for library in threadpool_info() if "numpy" in library["filepath"]]
        seen.extend(library["num_threads"] for library in numpys if library["user_api"] == "blas")

    sizes = np.full(600, 20)
    chunks.score(lambda row, into: np.ones_like(into), 4, sizes, True, look, threads)
    if not seen:
        pytest.skip("numpy does not bring a BLAS of its own here")
    assert set(seen) == {1}


def test_the_kernel_is_compiled_when_it_is_loaded() -> None:
    chunks.ENGINES.now()
    before = list(kernel._score_chunk.signatures)
    vectors = context("close", 9)[None]
    rnn_similarity(vectors[:, 0], vectors[:, 1:], RnnParams(), lengths=[5])
    jaccard_similarity(vectors, RnnParams(k=3, weight="exp", scale="none"), probes=(0, 2))
    assert kernel._score_chunk.signatures == before != []
