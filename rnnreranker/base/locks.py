"""Locks between processes: one process writes an output; another one waits and says so, or is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError

_HELD: set[tuple[Path, int]] = set()  # locks of this process, with the threads that hold them


def alone(output: Path, waiting: str) -> AbstractContextManager[bool]:
    """A block that one process at a time runs for an output, through the file `.NAME.lock`; yields whether it waited.

    The same thread may enter it again. The lock of a killed process is free.

    Raises:
        InputError: a folder that cannot be written.
    """
    mine = _lock_of(output).absolute(), threading.get_ident()
    return nullcontext(False) if mine in _HELD else _alone(output, lambda: say(waiting))


def sole(output: Path, doing: str) -> AbstractContextManager[bool]:
    """As `alone`, but does not wait for another process.

    Raises:
        InputError: another process holds the lock and is `doing` something; a folder that cannot be written.
    """

    def refuse() -> None:
        raise InputError(f"{output}: another process is {doing}; wait for it, or give another --output")

    return _alone(output, refuse)


def _lock_of(output: Path) -> Path:
    return output.with_name(f".{output.name}.lock")


@contextmanager
def _alone(output: Path, busy: Callable[[], object]) -> Iterator[bool]:
    """As `alone`; calls `busy` before it waits for another process."""
    from filelock import FileLock, Timeout

    path = _lock_of(output)
    mine = path.absolute(), threading.get_ident()
    lock = FileLock(path)
    waited = False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        waited = True
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror or error}); choose another folder") from None
    if waited:
        busy()
        lock.acquire()
    _HELD.add(mine)
    try:
        yield waited
    finally:
        _HELD.discard(mine)
        with suppress(OSError):  # the next process takes the file as it is; Windows removes it when it is free
            path.unlink()
        lock.release()
