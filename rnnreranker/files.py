"""Files that are read and written whole: gzip by name, atomic replacement, fingerprints, the cache folder."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from rnnreranker import interrupts
from rnnreranker.errors import InputError, no_space


def cache_home() -> Path:
    """The folder for everything the program generates: RNNRERANKER_HOME, else the user's cache folder."""
    named = os.environ.get("RNNRERANKER_HOME")
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "rnnreranker"


def read_bytes(path: str | os.PathLike[str], what: str = "file") -> bytes:
    """The content of a file, decompressed when its name ends in .gz.

    Raises:
        InputError: when the file is missing, a folder, unreadable, or not the gzip its name says.
    """
    with open_bytes(path, what) as stream:
        return stream.read()


@contextlib.contextmanager
def open_bytes(path: str | os.PathLike[str], what: str = "file", at: Callable[[], str] = str) -> Iterator[IO[bytes]]:
    """A stream of the content of a file, decompressed when its name ends in .gz; the block only reads.

    Args:
        path: of the file.
        what: the file is, for messages.
        at: where the block has come to, as `:3` for line 3.

    Raises:
        InputError: as `read_bytes`, also of what strikes while the block reads.
    """
    path = Path(path)
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as stream:
            try:
                yield stream  # type: ignore[misc]
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                place = at() or f": after {stream.tell()} bytes of what it holds"
                raise InputError(f"{path}{place}: not a whole gzip file ({error}); get it again") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such {what}; check the path") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, expected a {what}") from None
    except OSError as error:
        raise InputError(f"{path}{at()}: cannot be read ({error.strerror or error})") from None


def read_text(path: str | os.PathLike[str], what: str = "file") -> str:
    """The content of a UTF-8 text file, without a byte order mark, decompressed when its name ends in .gz.

    Raises:
        InputError: as `read_bytes`, and when the bytes are not UTF-8 or one is NUL (with the line of the first).
    """
    content = read_bytes(path, what)
    check_no_nul(content, path)
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8 text; expected a {what} in UTF-8") from None


def read_lines(path: str | os.PathLike[str], what: str = "file", errors: str = "strict") -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers from 1, streamed: as `read_text`, split at every line feed.

    errors: "replace" takes bytes that are not UTF-8 for U+FFFD.

    Raises:
        InputError: as `read_text`, when the stream comes to it.
    """
    number = 0
    with open_bytes(path, what, lambda: f":{number + 1}") as stream:
        for number, content in enumerate(stream, 1):
            check_no_nul(content, path, number)
            try:
                line = content.decode("utf-8", errors=errors)
            except UnicodeDecodeError:
                raise InputError(f"{path}:{number}: not UTF-8 text; expected a {what} in UTF-8") from None
            yield number, (line.removeprefix("\ufeff") if number == 1 else line).removesuffix("\n")


def check_no_nul(content: bytes, path: str | os.PathLike[str], line: int = 1) -> None:
    """Refuse a NUL byte, which ends a text for some programs and not for others.

    Raises:
        InputError: with the line; `line` is that of the first byte.
    """
    if (place := content.find(b"\0")) >= 0:
        number = line + content.count(b"\n", 0, place)
        raise InputError(f"{path}:{number}: a NUL byte; expected text, get or write the file again")


def first_line(path: str | os.PathLike[str]) -> str:
    """The first line of a text file that is not blank, decompressed when its name ends in .gz; empty where none is.

    Bytes that are not UTF-8 are replaced: this looks what a file is, and whoever reads it says what is wrong in it.

    Raises:
        InputError: when the file cannot be read.
    """
    with open_bytes(path) as stream:
        for line in stream:
            if text := line.decode("utf-8", errors="replace").removeprefix("\ufeff").strip():
                return text
    return ""


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


def fingerprint(*parts: Any) -> str:
    """16 hexadecimal digits that name the given values (JSON-serialisable, or bytes); equal values, equal name.

    >>> fingerprint("a", 1) == fingerprint("a", 1), fingerprint("a", 1) == fingerprint("a", 2)
    (True, False)
    """
    digest = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode()
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()[:16]


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
