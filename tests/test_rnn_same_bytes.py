"""numpy's engine and the compiled kernel give the same bytes, so that nothing but time depends on which is there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_rnn_fuzz import BLOCK, draw
from test_rnn_golden import CASES, Case

from rnnreranker.base.errors import InputError
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.engines import numpy as fallback
from rnnreranker.rnn.engines.when_compiled import SMALL, WIDEST, Engines
from rnnreranker.rnn.similarity import jaccard_by, similarity_by

kernel = pytest.importorskip(
    "rnnreranker.rnn.engines.kernel", reason="numba is not installed: there is no compiled kernel"
)
ENGINES: tuple[Any, ...] = (kernel.score_contexts, fallback.score_contexts)


def said_or_bytes(work: Callable[[], np.ndarray]) -> str | bytes:
    try:
        return work().tobytes()
    except InputError as error:
        return str(error)


def check_random(seed: int) -> None:
    """Jaccard similarities and s* of a case of `test_rnn_fuzz`, or the same refusal."""
    case = draw(seed)
    ours, other = (
        said_or_bytes(lambda run=engine: jaccard_by(run, case.vectors, case.params, case.probes, case.lengths, 1))
        for engine in ENGINES
    )
    assert ours == other, seed
    ours, other = (
        said_or_bytes(
            lambda run=engine: similarity_by(
                run, case.vectors[:, 0], case.vectors[:, 1:], case.params, None, case.lengths, 1
            )
        )
        for engine in ENGINES
    )
    assert ours == other, seed


@pytest.mark.parametrize("name", CASES or ["(no cases)"])
def test_golden_cases(name: str, shared: Any) -> None:
    case = Case(shared / "golden" / f"{name}.npz")
    for params in (case.params, RnnParams()):
        ours, other = (
            similarity_by(engine, case.query[None], case.candidates[None], params).tobytes() for engine in ENGINES
        )
        assert ours == other
        ours, other = (jaccard_by(engine, case.vectors[None], params, (0, 1)).tobytes() for engine in ENGINES)
        assert ours == other


def test_random_cases() -> None:
    for seed in range(600):
        check_random(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 10_000, 10 * BLOCK))
def test_ten_thousand_random_cases(first: int) -> None:
    for seed in range(first, first + 10 * BLOCK):
        check_random(seed)


@pytest.mark.parametrize("size", [255, 256, 257, 400])
@pytest.mark.parametrize("scale", ["minmax", "none"])
def test_contexts_around_the_width_that_is_compared_whole(size: int, scale: Any) -> None:
    vectors = np.random.default_rng(size).standard_normal((1, size, 8), dtype=np.float32)
    for weight in ("linear", "exp"):
        params = RnnParams(scale=scale, weight=weight, weight_scale=0.5)  # type: ignore[arg-type]
        ours, other = (jaccard_by(engine, np.abs(vectors), params, (0, size - 1)).tobytes() for engine in ENGINES)
        assert ours == other


class Loads:
    """Engines that note who worked; the kernel is there when it is let go."""

    def __init__(self, error: Exception | None = None) -> None:
        self.worked: list[str] = []
        self.go = threading.Event()
        self.error = error

    def plain(self) -> Callable[..., None]:
        return lambda: self.worked.append("numpy")

    def kernel(self) -> Callable[..., None]:
        assert self.go.wait(60)
        if self.error is not None:
            raise self.error
        return lambda: self.worked.append("kernel")

    def engines(self) -> Engines[Any]:
        return Engines(self.plain, self.kernel)


def test_small_work_does_not_load_the_kernel() -> None:
    loads = Loads()
    engines = loads.engines()
    engines.expect(np.array([10]))
    engines.for_work(np.array([10]))()
    engines.for_work(np.zeros(0, dtype=np.int64))()
    assert loads.worked == ["numpy", "numpy"]
    assert engines._loading is None


@pytest.mark.parametrize("sizes", [[500] * 10, [61] * 600])
def test_more_work_goes_on_by_the_kernel_once_it_is_there(sizes: list[int]) -> None:
    loads = Loads()
    engines = loads.engines()
    run = engines.for_work(np.array(sizes))
    run()
    loads.go.set()
    assert engines.now() is not run
    run()
    engines.for_work(np.array([2]))()
    assert loads.worked == ["numpy", "kernel", "kernel"]


def test_small_work_adds_up() -> None:
    loads = Loads()
    engines = loads.engines()
    for _ in range(SMALL // 500**2 + 1):
        engines.for_work(np.array([500]))()
    assert engines._loading is not None
    loads.go.set()
    engines.now()()
    assert loads.worked[-1] == "kernel"


def test_wide_contexts_wait_for_the_kernel() -> None:
    loads = Loads()
    loads.go.set()
    loads.engines().for_work(np.array([WIDEST + 1]))()
    loads.engines().for_work(np.array([WIDEST] * 5))()
    assert loads.worked == ["kernel", "kernel"]


def test_a_kernel_that_cannot_be_compiled_is_said() -> None:
    loads = Loads(OSError("no room"))
    engines = loads.engines()
    run = engines.for_work(np.array([500] * 10))
    loads.go.set()
    with pytest.raises(OSError, match="no room"):
        engines.now()
    with pytest.raises(OSError, match="no room"):
        run()
