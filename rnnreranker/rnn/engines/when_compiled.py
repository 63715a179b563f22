"""Which of two engines does some work: numpy's, which is there at once, or the kernel when it has been loaded.

Both give the same bytes, so that nothing but time depends on the choice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import lru_cache
from typing import Any, Generic, TypeVar

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.process.phases import phase

E = TypeVar("E", bound=Callable[..., None])
SMALL = 2_000_000  # pairs of elements that numpy compares sooner than the kernel is loaded
WIDEST = 1100  # elements of contexts of small work: numpy has some ten matrices of all pairs
MEANWHILE = 512  # of those that it takes on every thread while the kernel is loaded


class Engines(Generic[E]):
    """numpy's engine for small work; for more the kernel, which another thread loads, or compiles once on a machine.

    Args:
        plain: numpy's engine, imported; kernel: the compiled one, ready for its first work.
    """

    def __init__(self, plain: Callable[[], E], kernel: Callable[[], E]) -> None:
        self._plain, self._kernel = plain, kernel
        self._pairs = 0  # of all work so far
        self._loading: Future[E] | None = None
        self._lock = threading.Lock()

    def now(self) -> E:
        """The kernel, waited for; numpy's engine where there is no numba."""
        if (loading := self._begun()).done():
            return loading.result()
        with phase("loading the kernel, which a first use on a machine compiles", "kernel"):
            return loading.result()

    def expect(self, sizes: np.ndarray) -> None:
        """Contexts of these sizes, (B,), will come: where they are much work the kernel is loaded from now on."""
        if self._pairs + _pairs(sizes) > SMALL:
            self._begun()

    def for_work(self, sizes: np.ndarray) -> E:
        """What does the work on contexts of these sizes, (B,): the kernel once it is there, or from there on."""
        self._pairs += _pairs(sizes)
        widest = int(sizes.max(initial=0))
        plain = self._plain()
        if self._loading is None and self._pairs <= SMALL and widest <= WIDEST:
            return plain
        loading = self._begun()
        if loading.done() or widest > MEANWHILE:
            return self.now()

        def run(*work: Any) -> None:
            (loading.result() if loading.done() else plain)(*work)

        return run  # type: ignore[return-value]  # an engine is what can be called as one

    def _begun(self) -> Future[E]:
        """The kernel, that a thread has begun to load; Python waits for the thread before it ends."""
        with self._lock:
            if self._loading is None:
                loading = self._loading = Future[E]()
                threading.Thread(target=self._load, args=(loading,), name="rnnreranker-kernel").start()
        return self._loading

    def _load(self, loading: Future[E]) -> None:
        try:
            loading.set_result(self._kernel() if compiles() else self._plain())
        except BaseException as error:  # for whoever asks for the result
            loading.set_exception(error)


def _pairs(sizes: np.ndarray) -> int:
    return int(np.square(sizes, dtype=np.int64).sum())


@lru_cache(maxsize=1)
def compiles() -> bool:
    """Whether numba can compile the kernels; without it, one notice says so."""
    try:
        import numba

        if not getattr(numba.config, "DISABLE_JIT", 0):
            return True
        reason = "numba is switched off by NUMBA_DISABLE_JIT"
    except ImportError as error:
        reason = f"numba cannot be imported ({error})"
    notice(f"{reason}: similarities are computed with numpy, 2 to 10 times slower")
    return False
