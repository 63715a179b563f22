"""Phases of a command: a line on a terminal, now and then one in a log file, and the seconds of each phase."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO

from rnnreranker.base.arguments import in_command

OFTEN = 0.2  # seconds between two lines on a terminal
LOGGED, LOGGED_AT_LEAST = 10.0, 600.0  # seconds between two lines in a log file: the first, which doubles, the longest
SLOW = 0.0005  # seconds that a phase takes at least to be named in a summary

spent: dict[str, float] = {}  # account to seconds, without those of phases inside, in the order in which they began
_stack: list[tuple[str, str]] = []  # name and account of those that the main thread is in
_since = 0.0  # when the innermost last began or went on
_next = 0.0  # when a line may be shown again
_begun = 0.0  # when the command began; 0 = no process of a command
_drawn = False
_terminal: IO[str] | None = None  # a stream of this module's own: that of the process may be turned elsewhere


@contextlib.contextmanager
def phase(name: str, account: str = "") -> Iterator[None]:
    """The block, or the decorated function, is a phase; other threads than the main one report nothing.

    account: its name in the summary, if that differs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _account()
    _stack.append((name, account or name))
    spent.setdefault(account or name, 0.0)
    _show(name)
    try:
        yield
    finally:
        _account()
        _stack.pop()
        _show(_stack[-1][0] if _stack else "")


def tell(detail: Callable[[], str]) -> None:
    """Show how far the phase is, if its last line is long enough ago."""
    global _next
    now = time.monotonic()
    if not _begun or now < _next or not _stack or threading.current_thread() is not threading.main_thread():
        return
    said = f"{_stack[-1][0]}, {detail()}"
    if _terminal:
        _show(said)
    elif in_command():
        sys.stderr.write(f"{said}: {now - _begun:.0f} s\n")
        sys.stderr.flush()
    _next = now + (OFTEN if _terminal else min(max(LOGGED, now - _begun), LOGGED_AT_LEAST))


def summary() -> str:
    _account()
    return ", ".join(f"{account} {seconds:.2f} s" for account, seconds in spent.items() if seconds >= SLOW)


def start() -> None:
    """Begin the phases of a command."""
    global _terminal, _begun, _next
    spent.clear()
    _begun = time.monotonic()
    if sys.stderr.isatty():
        _terminal = os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace")
    _next = _begun + (0 if _terminal else LOGGED)


def is_command() -> bool:
    """Whether this process is a command of this package, so that no other code uses its libraries."""
    return _begun > 0


def clear() -> None:
    """Erase the line before other output."""
    _show("")


def _account() -> None:
    """Count the time until now for the innermost phase."""
    global _since
    now = time.perf_counter()
    if _stack:
        spent[_stack[-1][1]] = spent.get(_stack[-1][1], 0.0) + now - _since
    _since = now


def _show(text: str) -> None:
    global _drawn
    if _terminal and (text or _drawn):
        _terminal.write("\r\x1b[K" + (f"{text} …" if text else ""))
        _terminal.flush()
        _drawn = bool(text)
