"""Phases of a command: always visible on a terminal, now and then in a log file; and the seconds of each phase."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from rnnreranker.base.arguments import in_command

STARTING, WORKING = "starting", "working"  # phases without a name of their own
FIRST, EVERY = 0.3, 1.0  # seconds until a line is shown, and until it is shown again
LOGGED, LOGGED_AT_LEAST = 10.0, 600.0  # seconds between two lines in a log file
SLOW = 0.0005  # seconds that a phase takes at least to be named in a summary


@dataclass
class _Phase:
    name: str
    begun: float
    account: str  # what its seconds are called in a summary
    detail: object = ""  # how far it is

    def __str__(self) -> str:
        return f"{self.name}, {self.detail}" if self.detail else self.name


spent: dict[str, float] = {}  # account to seconds, without those of phases inside, in the order in which they began
_stack: list[_Phase] = []  # those that the main thread is in
_since = 0.0  # when the innermost last began or went on
_drawn = False
_terminal: IO[str] | None = None  # a stream of this module's own: that of the process may be turned elsewhere
_lock = threading.RLock()
_commands = 0  # that have begun in this process: the lines are those of the last one


@contextlib.contextmanager
def phase(name: str, account: str = "") -> Iterator[None]:
    """The block, or the decorated function, is a phase; other threads than the main one report nothing.

    account: its name in the summary, if that differs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _change([*_stack, _Phase(name, time.perf_counter(), account or name)])
    try:
        yield
    finally:
        _change(_stack[:-1])


def tell(detail: object) -> None:
    """Set the progress of the phase: a text, or an object with `__str__`."""
    if _stack and threading.current_thread() is threading.main_thread():
        _stack[-1].detail = detail


def summary() -> str:
    _change(_stack)
    return ", ".join(f"{account} {seconds:.2f} s" for account, seconds in spent.items() if seconds >= SLOW)


def start() -> None:
    global _terminal, _commands
    spent.clear()
    _commands += 1
    if sys.stderr.isatty():
        _terminal = os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace")
    threading.Thread(target=_tick if _terminal else _log, args=(_commands,), daemon=True, name="phases").start()


def clear() -> None:
    """Erase the line before other output."""
    global _drawn
    with _lock:
        if _drawn and _terminal:
            _terminal.write("\r\x1b[K")
            _terminal.flush()
            _drawn = False


def _change(stack: list[_Phase]) -> None:
    """Replace the phases; the time until now counts for the innermost one."""
    global _since
    now = time.perf_counter()
    if _stack:
        spent[_stack[-1].account] = spent.get(_stack[-1].account, 0.0) + now - _since
    if len(stack) > len(_stack):
        spent.setdefault(stack[-1].account, 0.0)
    _since = now
    clear()
    if (
        len(stack) == 1 < len(_stack) and stack[0].name == STARTING
    ):  # it has started: what comes now has no name of its own
        stack[0].name = stack[0].account = WORKING
    _stack[:] = stack
    _show()  # now: what follows may keep the interpreter to itself, as the import of a library does


def _show() -> None:
    global _drawn
    with _lock:
        if _stack and _terminal:
            at = _stack[-1]
            _terminal.write(f"\r\x1b[K{at} … {time.perf_counter() - at.begun:.0f} s")
            _terminal.flush()
            _drawn = True


def _tick(command: int) -> None:
    time.sleep(FIRST)
    while command == _commands:
        with contextlib.suppress(ValueError, OSError):  # the stream is closed
            _show()
        time.sleep(EVERY)


def _log(command: int) -> None:
    """Write a line on the phase after 10 seconds, 20, 40 …, then every ten minutes."""
    begun = time.monotonic()
    while command == _commands:
        time.sleep(min(max(LOGGED, time.monotonic() - begun), LOGGED_AT_LEAST))
        at = _stack[-1] if _stack else None
        if at is not None and at.name not in (STARTING, WORKING) and in_command() and command == _commands:
            with contextlib.suppress(ValueError, OSError):  # the stream is closed
                sys.stderr.write(f"{at}: {time.perf_counter() - at.begun:.0f} s\n")
                sys.stderr.flush()
