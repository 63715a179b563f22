"""The page cache of the system: let go of files, and see how many of them stay, for others have mapped them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from rnnreranker.base.errors import UnavailableError


def drop(folders: Iterable[Path]) -> float:
    """Ask the system to drop the pages of all files in some folders; the share of bytes of whose files some stayed.

    Pages that a running process has mapped stay, as those of Python itself; so may all on some file systems.

    Raises:
        UnavailableError: this system cannot be asked.
    """
    if not hasattr(os, "posix_fadvise"):
        raise UnavailableError("this system has no posix_fadvise, by which the page cache lets go of files")
    os.sync()  # pages that are not written yet would stay; once, for fsync takes a millisecond a file
    total = stayed = 0
    for file in _files(folders):
        try:
            number = os.open(file, os.O_RDONLY)
        except OSError:
            continue  # a link to nothing, a file of another user
        try:
            size = os.fstat(number).st_size
            os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
            total += size
            stayed += size * _cached(number, size)
        finally:
            os.close(number)
    return stayed / total if total else 0.0


def _cached(number: int, size: int) -> bool:
    """Whether the page in the middle of a file is in the page cache; False where the system does not tell."""
    try:
        return bool(os.preadv(number, [bytearray(1)], size // 2, os.RWF_NOWAIT))
    except (OSError, AttributeError):  # it would have to wait, or cannot tell
        return False


def _files(folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        for above, _, names in os.walk(folder):
            yield from (os.path.join(above, name) for name in names)
