"""Temporary files and folders of killed processes: the next write to the same path removes them.

A process locks its temporary files, so an unlocked one is free to remove. Systems without such locks keep them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path


def temporary_name(path: Path) -> Path:
    """The name of a file or folder while this thread writes it."""
    return path.with_name(f".{path.name}.{threading.get_native_id()}.tmp")


@contextlib.contextmanager
def temporary(path: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """A temporary file or folder for `path`, made by `make`, locked in the block and removed at its end.

    Raises:
        OSError: of `make`.
    """
    name = temporary_name(path)
    _remove_left(path)
    held: list[int] = []
    try:
        while not held:
            make(name)
            held += _held(name)
        yield name
    finally:
        _remove(name)
        for file in held:
            if file >= 0:
                os.close(file)


def _held(name: Path) -> list[int]:
    """A locked descriptor of `name`, -1 without locks; empty if another process removed it."""
    try:
        import fcntl
    except ImportError:
        return [-1]
    try:
        file = os.open(name, os.O_RDONLY)
    except FileNotFoundError:
        return []
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(file), os.stat(name)):
            return [file]
    except FileNotFoundError:
        pass
    except OSError:  # a file system without locks
        return [file]
    os.close(file)
    return []


def _remove_left(path: Path) -> None:
    try:
        names = os.listdir(path.parent)
    except OSError:
        return
    for name in names:
        if name.startswith(f".{path.name}.") and name.endswith(".tmp") and name[len(path.name) + 2 : -4].isdecimal():
            left = path.with_name(name)
            if _is_free(left):
                _remove(left)


def _is_free(left: Path) -> bool:
    """Whether no process writes a temporary file; without locks, whether it has this thread's name."""
    try:
        import fcntl

        file = os.open(left, os.O_RDONLY | os.O_NOFOLLOW)
    except (ImportError, OSError):
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return left.name.endswith(f".{threading.get_native_id()}.tmp")
    finally:
        os.close(file)
    return True


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):  # after a rename it is not there
            path.unlink()
