"""What a command is at: shown on a terminal from the first moment on, and how long each phase took."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

FIRST, EVERY = 0.3, 1.0  # seconds until a line is shown, and until it is shown again


@dataclass
class _Phase:
    name: str
    begun: float
    detail: str = ""


spent: dict[
    str, float
] = {}  # phase to its seconds, without those of phases inside it; in the order in which they began
_stack: list[_Phase] = []  # those that the main thread is in
_since = 0.0  # when the innermost last began or went on
_drawn = _quiet = False
_lock = threading.RLock()


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """The block is a phase of the work; of threads other than the main one it says nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _change([*_stack, _Phase(name, time.perf_counter())])
    try:
        yield
    finally:
        _change(_stack[:-1])


@contextlib.contextmanager
def shown_by_itself() -> Iterator[None]:
    """Inside the block a progress bar has the line."""
    global _quiet
    before, _quiet = _quiet, True
    clear()
    try:
        yield
    finally:
        _quiet = before


def tell(detail: str) -> None:
    """How far the phase is."""
    if _stack:
        _stack[-1].detail = f", {detail}"


def start() -> None:
    """Begin to show phases, where standard error is a terminal."""
    spent.clear()
    if sys.stderr.isatty():
        threading.Thread(target=_tick, daemon=True, name="phases").start()


def clear() -> None:
    """Take the line away, before something else is written."""
    global _drawn
    with _lock:
        if _drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            _drawn = False


def _change(stack: list[_Phase]) -> None:
    """Other phases from now on; the time till now is that of the one before."""
    global _since
    now = time.perf_counter()
    if _stack:
        spent[_stack[-1].name] = spent.get(_stack[-1].name, 0.0) + now - _since
    if len(stack) > len(_stack):
        spent.setdefault(stack[-1].name, 0.0)
    _since = now
    clear()
    _stack[:] = stack
    _show()  # now: what follows may keep the interpreter to itself, as the import of a library does


def _show() -> None:
    global _drawn
    with _lock:
        if _stack and not _quiet and sys.stderr.isatty():
            at = _stack[-1]
            sys.stderr.write(f"\r\x1b[K{at.name}{at.detail} … {time.perf_counter() - at.begun:.0f} s")
            sys.stderr.flush()
            _drawn = True


def _tick() -> None:
    time.sleep(FIRST)
    while True:
        with contextlib.suppress(ValueError, OSError):  # the stream is closed
            _show()
        time.sleep(EVERY)
