"""Locks between processes: one process writes an output; another one waits and says so, or is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError


@contextmanager
def alone(output: Path, waiting: str = "", *, doing: str = "") -> Iterator[bool]:
    """A block that one process at a time runs for an output, by the file `.NAME.lock`; yields whether it waited.

    The same thread may enter it again.

    Args:
        waiting: the line that is printed before it waits.
        doing: the work of another process; then this one does not wait.

    Raises:
        InputError: a folder that cannot be written; with `doing`, a lock that another process holds.
    """
    from filelock import FileLock, Timeout

    path = output.with_name(f".{output.name}.lock")
    lock = FileLock(path, is_singleton=True)
    busy = InputError(f"{output}: another process is {doing}; wait for it, or give another --output")
    if lock.is_locked:  # by this thread
        if doing:
            raise busy
        yield False
        return
    waited = False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        if doing:
            raise busy from None
        waited = True
        say(waiting)
        lock.acquire()
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror or error}); choose another folder") from None
    try:
        yield waited
    finally:
        with suppress(OSError):  # the next process takes the file as it is; Windows removes it when it is free
            path.unlink()
        lock.release()
