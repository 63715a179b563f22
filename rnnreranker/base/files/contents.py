"""Digests of files and folders; a file is read again only if its size or time changed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files.atomic import cache_home, write_json
from rnnreranker.base.files.reading import rereadable
from rnnreranker.base.process.phases import phase

LARGE = 2**28  # bytes from which a terminal shows that a file is read
SETTLED = 2 * 10**9  # nanoseconds after which a change of a file is sure to have another time


def fingerprint(*parts: Any) -> str:
    """16 hexadecimal digits of values (JSON-serialisable, or bytes); equal values have equal digits."""
    digest = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode()
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()[:16]


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, cached while its size and times stay; InputError: missing or unreadable."""
    try:
        path = rereadable(path)
        stat = path.stat()
        remembered = (
            cache_home() / "digests" / (hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32] + ".json")
        )
        stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
        if known := _known(remembered, stamp):
            return known
    except OSError as error:
        raise _unreadable(path, error) from None
    digest = content_digest(path)
    if time.time_ns() - max(stamp[1:]) > SETTLED:
        try:
            remembered.parent.mkdir(parents=True, exist_ok=True)
            write_json(remembered, {"path": str(path), "stamp": stamp, "sha256": digest})
        except (OSError, InputError):
            return digest  # a cache folder that cannot be written costs time, not correctness
    return digest


def content_digest(path: Path) -> str:
    """The SHA-256 of a file, without the cache; errors as `file_digest`."""
    try:
        with open(path, "rb") as stream:
            large = os.fstat(stream.fileno()).st_size >= LARGE
            with phase(f"digest of {path.name}") if large else contextlib.nullcontext():
                return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path}: no such file; it was there or should be: get it again")
    return InputError(f"{path}: cannot be read ({error.strerror or error})")


def files_digest(files: Iterable[Path], folder: Path) -> str:
    """The SHA-256 of the names, within a folder, and the contents of files, in any order; errors as `file_digest`."""
    lines = sorted(f"{file.relative_to(folder).as_posix()} {file_digest(file)}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _known(remembered: Path, stamp: list[int]) -> str:
    try:
        entry = json.loads(remembered.read_text(encoding="utf-8"))
        return str(entry["sha256"]) if entry["stamp"] == stamp else ""
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""  # nothing remembered, or not ours
