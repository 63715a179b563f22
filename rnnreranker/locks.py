"""Locks between processes: one works at a place, another that wants it waits and says so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rnnreranker.command import say
from rnnreranker.errors import InputError


def hold(file: int, waiting: str) -> bool:
    """Lock an open file until it is closed, and say whether that took waiting; without fcntl (Windows) no lock.

    waiting: the line for the user when another process holds it.
    """
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(waiting)
        fcntl.flock(file, fcntl.LOCK_EX)
        return True
    return False


def is_at(file: int, path: Path) -> bool:
    """Whether an open file is still the one at `path`: whoever held it may have removed it."""
    try:
        return os.stat(path).st_ino == os.fstat(file).st_ino
    except FileNotFoundError:
        return False


@contextmanager
def alone(output: Path, waiting: str) -> Iterator[bool]:
    """A block that one process at a time is in for an output, and whether it had to wait; it keeps `.NAME.lock`.

    A process that is killed holds nothing: the file it leaves is taken by the next.

    Raises:
        InputError: a folder that cannot be written.
    """
    path = output.with_name(f".{output.name}.lock")
    waited = False
    while True:
        try:
            lock = open(path, "w")  # noqa: SIM115  closed below
        except OSError as error:
            raise InputError(
                f"{output}: cannot be written ({error.strerror or error}); choose a folder that exists and is yours"
            ) from None
        with lock:
            waited = hold(lock.fileno(), waiting) or waited
            if not is_at(lock.fileno(), path):
                continue
            try:
                yield waited
            finally:
                path.unlink(missing_ok=True)
            return
