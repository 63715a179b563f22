"""Files and folders that are written whole: under a temporary name, which they lose when all is there."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from rnnreranker.errors import InputError, no_space
from rnnreranker.process import interrupts


def cache_home() -> Path:
    """The folder for everything the program generates: RNNRERANKER_HOME, else the user's cache folder."""
    named = os.environ.get("RNNRERANKER_HOME")
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "rnnreranker"


@contextlib.contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary stream whose content appears under `path` only when the block ends without an error.

    The stream compresses when the name ends in .gz (with a zero time stamp, so equal content gives equal bytes). A
    link stays a link: the file it points to is replaced. Devices and pipes, as /dev/stdout, are written to as they are.

    Raises:
        InputError: when the folder does not exist or cannot be written.
    """
    path = _behind_links(Path(path))
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected the name of a file to write")
    in_place = _is_device(path)
    temporary = path if in_place else path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if not in_place:
            interrupts.unfinished.add(temporary)
        raw = open(temporary, "wb")  # noqa: SIM115  closed below
    except OSError as error:
        interrupts.unfinished.discard(temporary)
        raise _unwritable(path, error) from None
    try:
        with raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as stream:
                    yield stream  # type: ignore[misc]
            else:
                yield raw
        if not in_place:
            os.replace(temporary, path)
    except BrokenPipeError:  # a reader that has gone is no fault of the path
        raise
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        if not in_place:
            temporary.unlink(missing_ok=True)
            interrupts.unfinished.discard(temporary)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a JSON document atomically: two spaces of indent, non-ASCII kept, a newline at the end."""
    with write_atomically(path) as stream:
        stream.write((json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def check_writable(*paths: str | os.PathLike[str] | None) -> None:
    """Fail now, before hours of work, when a path that is given could not be written at the end.

    Raises:
        InputError: when the folder does not exist or cannot be written.
    """
    for path in [_behind_links(Path(given)) for given in paths if given]:
        if path.is_dir():
            raise InputError(f"{path}: is a folder, expected the name of a file to write")
        if _is_device(path):
            continue
        probe = path.with_name(f".{path.name}.{os.getpid()}.probe")
        try:
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise _unwritable(path, error) from None


@contextlib.contextmanager
def folder_written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its name when the block ends without an error.

    A folder that stands there already is moved aside, to `.NAME.old`, and deleted only when the new one has its name:
    what a kill between the two leaves aside is moved back by the next write. A link stays a link.

    Raises:
        InputError: when the folder cannot be written, or a file has its name.
    """
    path = _behind_links(Path(path))
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file, expected the name of a folder to write")
    aside = path.with_name(f".{path.name}.old")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if aside.exists() and not path.exists():  # a write was killed between its two renames
            os.replace(aside, path)
        shutil.rmtree(temporary, ignore_errors=True)
        interrupts.unfinished.add(temporary)
        temporary.mkdir()
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        yield temporary
        _swap(temporary, path, aside)
    except OSError as error:
        if no_space(error):
            raise _unwritable(path, error) from None
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        interrupts.unfinished.discard(temporary)


def _swap(new: Path, path: Path, aside: Path) -> None:
    """Give the new folder its name; at every moment the old one or the new one is there whole, here or aside."""
    try:
        if path.exists():
            if aside.exists():
                shutil.rmtree(aside)  # of a write that was killed after its renames
            os.replace(path, aside)
        try:
            os.replace(new, path)
        except OSError:
            if aside.exists():
                os.replace(aside, path)
            raise
    except OSError as error:
        raise _unwritable(path, error) from None
    shutil.rmtree(aside, ignore_errors=True)


def _behind_links(path: Path) -> Path:
    """What a link leads to, that need not exist; other paths as they are, and so links to devices, as /dev/stdout.

    Raises:
        InputError: links that lead to each other.
    """
    if not path.is_symlink() or (_is_device(path) and not path.is_dir()):
        return path
    behind = Path(os.path.realpath(path))
    if behind.is_symlink():
        raise InputError(
            f"{path}: cannot be written (a link that leads back to itself); remove it or give another name"
        )
    return behind


def _is_device(path: Path) -> bool:
    """Whether something stands at `path` that is no regular file: a device, a pipe."""
    return path.exists() and not path.is_file()


def _unwritable(path: Path, error: OSError) -> InputError:
    remedy = "make room or choose another disk" if no_space(error) else "choose a folder that exists and is yours"
    return InputError(f"{path}: cannot be written ({error.strerror or error}); {remedy}")
