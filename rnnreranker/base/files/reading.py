"""Reading of files: gzip by name, one line for each error."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gzip
import io
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.given import path_of

GZIP = b"\x1f\x8b"  # the first bytes of such a file


def rereadable(path: str | os.PathLike[str]) -> Path:
    """The path itself; for a pipe, as the shell's `<(zcat run.gz)`, a copy that exists until the process ends.

    Raises:
        OSError: the pipe cannot be read, or the copy cannot be written.
    """
    path = Path(path)
    if not path.exists() or path.is_file() or path.is_dir():
        return path
    return _copy(path, path.stat().st_ino)


@functools.cache
def _copy(path: Path, inode: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="rnnreranker-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with open(path, "rb") as pipe:
        first = pipe.read(len(GZIP))
        copy = folder / ("content.gz" if first == GZIP else "content")
        with open(copy, "wb") as stream:
            stream.write(first)
            shutil.copyfileobj(pipe, stream)
    return copy


def read_bytes(path: str | os.PathLike[str], what: str = "file") -> bytes:
    """The content of a file, decompressed if its name ends in .gz.

    Raises:
        InputError: a missing or unreadable file, a folder, damaged gzip.
    """
    with open_bytes(path, what) as stream:
        return stream.read()


@contextlib.contextmanager
def open_bytes(path: str | os.PathLike[str], what: str = "file", at: Callable[[], str] = str) -> Iterator[IO[bytes]]:
    """A stream of the content of a file, decompressed if its name ends in .gz; errors as `read_bytes`, also in the
    block.

    what: the kind of file; at: the position of the block, as `:3` for line 3; both for messages.
    """
    path = path_of(path, f"a {what}")
    try:
        file = rereadable(path)
        with gzip.open(file, "rb") if file.suffix == ".gz" else open(file, "rb") as stream:
            try:
                if file.suffix != ".gz" and isinstance(stream, io.BufferedReader) and stream.peek(2)[:2] == GZIP:
                    raise InputError(f"{path}: is gzip, but its name does not end in .gz; rename it to {path.name}.gz")
                yield stream  # type: ignore[misc]
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                where = at() or f": after {stream.tell()} bytes of what it holds"
                raise InputError(f"{path}{where}: not a whole gzip file ({error}); get it again") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such {what}; check the path") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, expected a {what}") from None
    except OSError as error:
        raise InputError(f"{path}{at()}: cannot be read ({error.strerror or error})") from None


def read_text(path: str | os.PathLike[str], what: str = "file") -> str:
    """The content of a UTF-8 file without a byte order mark, decompressed if its name ends in .gz.

    Raises:
        InputError: as `read_bytes`; not UTF-8, or a NUL byte (with the line of the first).
    """
    content = read_bytes(path, what)
    check_no_nul(content, path)
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8 text; expected a {what} in UTF-8") from None


def read_lines(path: str | os.PathLike[str], what: str = "file", errors: str = "strict") -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers from 1, as a stream; errors as `read_text`.

    errors: "replace" replaces bytes that are not UTF-8 by U+FFFD.
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
    """Raise InputError for a NUL byte, which ends a text for some programs; line: of the first byte."""
    if (position := content.find(b"\0")) >= 0:
        number = line + content.count(b"\n", 0, position)
        raise InputError(f"{path}:{number}: a NUL byte; expected text, get or write the file again")


def first_line(path: str | os.PathLike[str]) -> str:
    """The first line of a text file that is not blank, or ""; replaces bytes that are not UTF-8."""
    with open_bytes(path) as stream:
        for line in stream:
            if text := line.decode("utf-8", errors="replace").removeprefix("\ufeff").strip():
                return text
    return ""


_ELSEWHERE = re.compile(r"^(/|~|\.\.(/|$)|[A-Za-z]:\\)")


def is_elsewhere(text: str) -> bool:
    return _ELSEWHERE.match(text) is not None


def local_name(value: Any) -> Any:
    """A value for files that others read: a path outside the working folder becomes its last name.

    >>> local_name("/home/ada/bm25.txt"), local_name("runs/bm25.txt"), local_name("BAAI/bge-small-en"), local_name(5)
    ('bm25.txt', 'runs/bm25.txt', 'BAAI/bge-small-en', 5)
    """
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or not is_elsewhere(value):
        return value
    return re.split(r"[/\\]", value.rstrip("/\\"))[-1]
