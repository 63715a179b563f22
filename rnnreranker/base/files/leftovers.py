"""Temporary files and folders of killed processes: the next write to the same path removes them.

A temporary name has the machine, the process and the thread that write it. It is free to remove if its process has
ended; names of other machines stay.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def temporary(path: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """A temporary file or folder for `path`, made by `make` and removed at the end of the block.

    Raises:
        OSError: of `make`.
    """
    own = f".{path.name}.{platform.node()}."
    name = path.with_name(f"{own}{os.getpid()}.{threading.get_native_id()}.tmp")
    with contextlib.suppress(OSError):
        for left in os.listdir(path.parent):
            if left.startswith(own) and left.endswith(".tmp") and _has_ended(left.removeprefix(own).split(".")[0]):
                _remove(path.with_name(left))
    _remove(name)  # of an earlier process with our numbers
    try:
        make(name)
        yield name
    finally:
        _remove(name)


def _has_ended(process: str) -> bool:
    """Whether no process of this number runs; False where systems do not say."""
    if os.name != "posix" or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):  # after a rename it is not there
            path.unlink()
