"""The size and SHA-256 of each file of an index, in `rnnreranker.json`.

Opening an index compares sizes and times of change. The writer derives the fraction of a second of that time from the
SHA-256, and the description has no times, so equal documents give equal bytes. A file with another fraction, as a copy
without times, is read once as a whole.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files.contents import content_digest, file_digest
from rnnreranker.base.files.json_files import read_json

DESCRIPTION = "rnnreranker.json"
DOCIDS, TEXTS = "docids", "texts"  # groups of files beside those of the parts; every part needs the docids
AGAIN = "copy the index again, or make it again with python -m rnnreranker.index and --overwrite"
Groups = Mapping[str, Mapping[str, Mapping[str, Any]]]  # group → name of a file in the index → its bytes and sha256


def names_in(folder: Path) -> set[str]:
    """The files in a folder and below, by their names in it, except the description of an index and Lucene's lock."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.name != "write.lock")
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
    try:
        status = path.stat()
    except OSError:
        return
    noted = _noted(path, status.st_mtime_ns, status.st_size, status.st_ino)
    for group in (DOCIDS, *groups):
        for name, of_file in noted.get(group, {}).items():
            if reason := _unlike(index / name, of_file["bytes"], of_file["sha256"]):
                raise InputError(f"{index / name}: {reason}; {AGAIN}")


def check_whole(index: Path, groups: Groups) -> list[str]:
    """The problems of all changed files of an index; reads all files."""
    files = {name: of_file for group in groups.values() for name, of_file in group.items()}
    wrong = []
    for name, of_file in sorted(files.items()):
        path = index / name
        reason = _other_size(path, of_file["bytes"])
        if not reason and content_digest(path) != of_file["sha256"]:
            reason = "its bytes are not those that were written"
        wrong += [f"{path}: {reason}"] if reason else []
    return wrong


def noted_files(described: Mapping[str, Any], path: Path) -> Groups:
    """The files of a description of an index; empty if it lists none.

    Raises:
        InputError: entries without bytes and sha256, a name that leads out of the index.
    """
    groups = described.get("files", {})
    good = isinstance(groups, dict) and all(isinstance(group, dict) for group in groups.values())
    for name, of_file in [entry for group in groups.values() for entry in group.items()] if good else ():
        good &= isinstance(of_file, dict) and set(of_file) == {"bytes", "sha256"} and type(of_file["bytes"]) is int
        good = good and _is_sha256(of_file["sha256"])
        good &= name == str(PurePosixPath(name)) != "." and not {"..", "/"} & {*PurePosixPath(name).parts}
    if not good:
        raise InputError(f"{path}: files are not noted as this version does, by bytes and sha256; {AGAIN}")
    return groups


@functools.lru_cache(maxsize=16)
def _noted(path: Path, *_stamp: int) -> Groups:
    described = read_json(path, repair="make the index again")
    return noted_files(described, path) if isinstance(described, dict) else {}  # `describe` says what it is


def _unlike(path: Path, size: int, digest: str) -> str:
    """The difference of a file from the one that was written, or ""; reads it if its time does not match."""
    if reason := _other_size(path, size):
        return reason
    if path.stat().st_mtime_ns % 10**9 == _fraction(digest) or file_digest(path) == digest:
        return ""
    return "its bytes are not those that were written"


def _other_size(path: Path, size: int) -> str:
    try:
        status = path.stat()
    except OSError as error:
        return f"cannot be read ({error.strerror or error}), but was written with the index"
    if not stat.S_ISREG(status.st_mode):
        return "is no file, but one was written with the index"
    return "" if status.st_size == size else f"has {status.st_size} bytes, but was written with {size}"


def _fraction(digest: str) -> int:
    """The nanoseconds that stand for a digest: whole microseconds, which clocks rarely give."""
    return int(digest[:8], 16) % 10**6 * 1000


def _is_sha256(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")
