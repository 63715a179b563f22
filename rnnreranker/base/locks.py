"""Locks between processes: one works on a path, another waits and says so."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError
from rnnreranker.base.process import interrupts


def hold(file: int, busy: Callable[[], object]) -> bool:
    """Lock an open file until it is closed, and say whether that took waiting; without fcntl (Windows) no lock.

    busy: called when another process holds it, before this one waits; what it raises ends that.
    """
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        busy()
        fcntl.flock(file, fcntl.LOCK_EX)
        return True
    return False


def is_at(file: int, path: Path) -> bool:
    """Whether an open file is still the one at `path`: whoever held it may have removed it."""
    try:
        return os.stat(path).st_ino == os.fstat(file).st_ino
    except FileNotFoundError:
        return False


def alone(output: Path, waiting: str) -> AbstractContextManager[bool]:
    """A block that one process at a time is in for an output, and whether it had to wait; it keeps `.NAME.lock`.

    A process that is killed holds nothing: the file it leaves is taken by the next.

    Raises:
        InputError: a folder that cannot be written.
    """
    return _alone(output, lambda: say(waiting))


@contextmanager
def alone_in(folder: Path, waiting: str) -> Iterator[None]:
    """A block that one process at a time is in for a folder, which is made; no file of a lock stays.

    Where the system or the file system does not lock folders, it locks nothing.

    Raises:
        OSError: a folder that cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = os.open(folder, os.O_RDONLY) if os.name == "posix" else None
    try:
        if file is not None:
            with suppress(OSError):  # as NFS, which locks only what is open for writing
                hold(file, lambda: say(waiting))
        yield
    finally:
        if file is not None:
            os.close(file)


def sole(output: Path, doing: str) -> AbstractContextManager[bool]:
    """As `alone`, but where another process is at it this one does not wait.

    Raises:
        InputError: another process is at it, `doing` says what it does; a folder that cannot be written.
    """

    def refuse() -> None:
        raise InputError(f"{output}: another process is {doing}; wait for it, or give another --output")

    return _alone(output, refuse)


@contextmanager
def _alone(output: Path, busy: Callable[[], object]) -> Iterator[bool]:
    path = output.with_name(f".{output.name}.lock")
    waited = False
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = open(path, "w")  # noqa: SIM115  closed below
        except OSError as error:
            raise InputError(
                f"{output}: cannot be written ({error.strerror or error}); choose another folder"
            ) from None
        with lock:
            waited = hold(lock.fileno(), busy) or waited
            if not is_at(lock.fileno(), path):
                continue
            interrupts.unfinished.add(path)
            try:
                yield waited
            finally:
                with suppress(OSError):  # whoever comes next takes the file as it is
                    path.unlink()
                interrupts.unfinished.discard(path)
            return
