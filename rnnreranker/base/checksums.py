"""The size and SHA-256 of each file of an index, in `rnnreranker.json`.

Opening an index compares sizes and times of change. The writer derives the fraction of a second of that time from the
SHA-256, and the description has no times, so equal documents give equal bytes. A file with another fraction, as a copy
without times, is read once as a whole.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import content_digest, file_digest
from rnnreranker.base.strict import read_json

DESCRIPTION = "rnnreranker.json"
DOCIDS, TEXTS = "docids", "texts"  # groups of files beside those of the parts; every part needs the docids
AGAIN = "copy the index again, or make it again with python -m rnnreranker.index and --overwrite"
Groups = Mapping[str, Mapping[str, Mapping[str, Any]]]  # group → name of a file in the index → its bytes and sha256


def names_in(folder: Path) -> set[str]:
    """The files in a folder and below, by their names in it; not an index's description, Lucene's lock, hidden ones."""
    files = (path.relative_to(folder) for path in folder.rglob("[!.]*") if path.is_file() and path.name != "write.lock")
    return {path.as_posix() for path in files if str(path) != DESCRIPTION}


def note_files(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The entries of the description for files just written: name → bytes and sha256; sets their times."""
    noted = {}
    for name in sorted(names):
        digest = content_digest(folder / name)
        status = (folder / name).stat()
        noted[name] = {"bytes": status.st_size, "sha256": digest}
        before_now = (status.st_mtime_ns // 10**9 - 1) * 10**9
        with contextlib.suppress(OSError):  # a file system that keeps no such times costs a reading
            os.utime(folder / name, ns=(status.st_atime_ns, before_now + _fraction(digest)))
    return noted


def check_files(index: Path, *groups: str) -> None:
    """Check by sizes and times that the docids and the files of some parts are unchanged.

    groups: parts of the index, or `TEXTS`. Passes if the description lists no files.

    Raises:
        InputError: a missing or changed file; a description of another form.
    """
    path = index / DESCRIPTION
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        status = path.stat()
        noted = _noted(path, status.st_mtime_ns, status.st_size, status.st_ino)
        for name, of_file in [entry for group in (DOCIDS, *groups) for entry in noted.get(group, {}).items()]:
            if reason := _unlike(index / name, of_file, whole=False):
                raise InputError(f"{index / name}: {reason}; {AGAIN}")


def check_whole(index: Path, groups: Groups) -> list[str]:
    """The problems of all changed files of an index; reads all files."""
    files = sorted(entry for group in groups.values() for entry in group.items())
    reasons = {index / name: _unlike(index / name, of_file, whole=True) for name, of_file in files}
    return [f"{path}: {reason}" for path, reason in reasons.items() if reason]


def noted_files(described: Mapping[str, Any], path: Path) -> Groups:
    """The files of a description of an index; empty if it lists none.

    Raises:
        InputError: entries without bytes and sha256, a name that leads out of the index.
    """
    groups = described.get("files", {})
    with contextlib.suppress(AttributeError, TypeError, KeyError):  # of a value that is no mapping, or lacks a key
        if all(_is_noted(name, **of_file) for group in groups.values() for name, of_file in group.items()):
            return groups
    raise InputError(f"{path}: files are not noted as this version does, by bytes and sha256; {AGAIN}")


def _is_noted(name: str, *, bytes: Any, sha256: Any) -> bool:
    inside = name == str(PurePosixPath(name)) != "." and not {"..", "/"} & {*PurePosixPath(name).parts}
    return inside and type(bytes) is int and re.fullmatch("[0-9a-f]{64}", sha256) is not None


@functools.lru_cache(maxsize=16)
def _noted(path: Path, *_stamp: int) -> Groups:
    described = read_json(path, repair="make the index again")
    return noted_files(described, path) if isinstance(described, dict) else {}  # `describe` says what it is


def _unlike(path: Path, of_file: Mapping[str, Any], whole: bool) -> str:
    """The difference of a file from the one that was written, or ""; reads it if `whole`, or if its time differs."""
    try:
        status = path.stat()
    except OSError as error:
        return f"cannot be read ({error.strerror or error}), but was written with the index"
    size, digest = of_file["bytes"], of_file["sha256"]
    if not path.is_file() or status.st_size != size:
        return f"has {status.st_size} bytes, but was written with {size}"
    if whole:
        same = content_digest(path) == digest
    else:
        same = status.st_mtime_ns % 10**9 == _fraction(digest) or file_digest(path) == digest
    return "" if same else "its bytes are not those that were written"


def _fraction(digest: str) -> int:
    """The nanoseconds for a digest: whole microseconds, which clocks rarely give."""
    return int(digest[:8], 16) % 10**6 * 1000
