"""Files and folders written whole: under a temporary name until they are complete."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from rnnreranker.base.arguments import in_command
from rnnreranker.base.errors import InputError, no_space
from rnnreranker.base.files.leftovers import temporary
from rnnreranker.base.given import path_of

STDOUT = "-"
read_by_command: dict[tuple[int, int] | None, str] = {}  # identity of each file that `apart` found -> its argument


def cache_home() -> Path:
    """The folder for all generated files: RNNRERANKER_HOME, else the user's cache folder."""
    named = os.environ.get("RNNRERANKER_HOME")
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "rnnreranker"


@contextlib.contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary stream whose content appears under `path` only if the block ends without an error.

    A name in .gz compresses (time stamp 0: equal content gives equal bytes). A link's target is replaced. Devices and
    pipes are written directly; `-` is stdout.

    Raises:
        InputError: the folder does not exist or cannot be written.
    """
    path = path_of(path, "the name of a file to write")
    if str(path) == STDOUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = behind_links(path)
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected the name of a file to write")
    try:
        if _is_device(path):
            with _opened(path, path) as stream:
                yield stream
        else:
            with temporary(path, Path.touch) as name:
                with _opened(name, path) as stream:
                    yield stream
                os.replace(name, path)
    except BrokenPipeError:  # a reader that has gone is no fault of the path
        raise
    except OSError as error:
        raise _unwritable(path, error) from None


@contextlib.contextmanager
def _opened(name: Path, path: Path) -> Iterator[IO[bytes]]:
    """A stream to the file `name`; compresses if `path`, its later name, ends in .gz."""
    with open(name, "wb") as raw:
        if path.suffix == ".gz":
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as stream:
                yield stream  # type: ignore[misc]
        else:
            yield raw


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    with write_atomically(path) as stream:
        stream.write((json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def check_writable(*paths: str | os.PathLike[str] | None) -> None:
    """Raise InputError before any work if a path cannot be written."""
    asked = [path_of(one, "the name of a file to write") for one in paths if not isinstance(one, str | None) or one]
    for path in [behind_links(given) for given in asked if str(given) != STDOUT]:
        if path.is_dir():
            raise InputError(f"{path}: is a folder, expected the name of a file to write")
        if _is_device(path):
            continue
        try:
            with temporary(path, Path.touch):
                pass
        except OSError as error:
            raise _unwritable(path, error) from None


@contextlib.contextmanager
def folder_written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary folder that becomes `path` if the block ends without an error.

    An older folder is `.NAME.old` until the new one has its name; the next write restores it after a kill in between.

    Raises:
        InputError: the folder cannot be written, or a file has its name.
    """
    path = behind_links(path_of(path, "the name of a folder to write"))
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file, expected the name of a folder to write")
    aside = _aside(path)
    begun = False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if aside.exists() and not path.exists():  # a write was killed between its two renames
            os.replace(aside, path)
        with temporary(path, Path.mkdir) as name:
            begun = True
            yield name
            put_folder(name, path)
    except OSError as error:
        if no_space(error) or not begun:
            raise _unwritable(path, error) from None
        raise


def put_folder(new: Path, path: Path) -> None:
    """Rename a complete new folder to `path`; the old one or the new one exists at every moment.

    Raises:
        InputError: the folder cannot be written.
    """
    path = behind_links(path)
    aside = _aside(path)
    try:
        if path.exists():
            if aside.exists():
                shutil.rmtree(aside)  # of a write that was killed after its renames
            os.replace(path, aside)
        os.replace(new, path)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        if path.exists():
            shutil.rmtree(aside, ignore_errors=True)
        elif aside.exists():
            os.replace(aside, path)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def behind_links(path: Path) -> Path:
    """The target of a link, which need not exist; other paths and links to devices unchanged.

    Raises:
        InputError: links in a circle, a path that the running command reads.
    """
    if read_by_command and in_command() and (given := read_by_command.get(file_identity(path))):
        raise InputError(f"{path}: would be replaced, but the command reads it ({given}); give another name")
    if not path.is_symlink() or (_is_device(path) and not path.is_dir()):
        return path
    behind = Path(os.path.realpath(path))
    if behind.is_symlink():
        raise InputError(
            f"{path}: cannot be written (a link that leads back to itself); remove it or give another name"
        )
    return behind


def file_identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file or folder; None if there is none."""
    with contextlib.suppress(OSError, ValueError):
        return (status := os.stat(path)).st_dev, status.st_ino
    return None


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _unwritable(path: Path, error: OSError) -> InputError:
    remedy = "make room or choose another disk" if no_space(error) else "choose a folder that exists and can be written"
    return InputError(f"{path}: cannot be written ({error.strerror or error}); {remedy}")
