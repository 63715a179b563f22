"""Files: read with one line for each error, written whole or not at all, known by their digests; strict JSON and YAML.

Plain words of YAML are numbers, null, `true` and `false`. All others, as `yes`, `010` and `1e-5`, are texts; a setting
that is a number reads them.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from rnnreranker.base.errors import InputError, no_space, path_of

STDOUT = "-"
FORMATS = ("trec", "msmarco")  # of run files
DESCRIPTION = "rnnreranker.json"
DOCIDS, TEXTS = "docids", "texts"  # groups of files beside those of the parts; every part needs the docids
AGAIN = "copy the index again, or make it again with python -m rnnreranker.index and --overwrite"
Groups = Mapping[str, Mapping[str, Mapping[str, Any]]]  # group → name of a file in the index → its bytes and sha256
SETTLED = 2 * 10**9  # nanoseconds after which a change of a file is sure to have another time


def cache_home() -> Path:
    """The folder for all generated files: RNNRERANKER_HOME, else the user's cache folder."""
    if named := os.environ.get("RNNRERANKER_HOME"):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "rnnreranker"


# Writing: under a temporary name until the content is complete.


@contextlib.contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary stream whose content appears under `path` only if the block ends without an error.

    A name in .gz compresses (time stamp 0: equal content gives equal bytes). A link's target is replaced. Devices and
    pipes are written directly; `-` is stdout.

    Raises:
        InputError: the folder does not exist or cannot be written.
    """
    path = _target(path)
    if str(path) == STDOUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with (
        _writing(path),
        contextlib.nullcontext(path) if _is_device(path) else temporary(path) as name,
    ):
        with open(name, "wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", 6, raw, mtime=0) as stream:
                    yield stream  # type: ignore[misc]
            else:
                yield raw
        if name != path:
            os.replace(name, path)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    with write_atomically(path) as stream:
        stream.write((json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def check_writable(*paths: str | os.PathLike[str] | None) -> None:
    """Raise InputError before any work if a path cannot be written."""
    for path in [_target(one) for one in paths if one not in (None, "")]:
        if str(path) != STDOUT and not _is_device(path):
            with _writing(path), temporary(path):
                pass


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
    with contextlib.ExitStack() as stack:
        with _writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if _aside(path).exists() and not path.exists():  # a write was killed between its two renames
                os.replace(_aside(path), path)
            name = stack.enter_context(temporary(path, Path.mkdir))
        try:
            yield name
        except OSError as error:
            raise _unwritable(path, error) if no_space(error) else error from None
        put_folder(name, path)


def put_folder(new: Path, path: Path) -> None:
    """Rename a complete new folder to `path`; the old one or the new one exists at every moment.

    Raises:
        InputError: the folder cannot be written.
    """
    path = behind_links(path)
    with _writing(path):
        if path.exists():
            shutil.rmtree(_aside(path), ignore_errors=True)  # of a write that was killed after its renames
            os.replace(path, _aside(path))
        os.replace(new, path)
    shutil.rmtree(_aside(path), ignore_errors=True)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def behind_links(path: Path) -> Path:
    """The target of a link, which need not exist; other paths unchanged."""
    return Path(os.path.realpath(path)) if path.is_symlink() and not _is_device(path) else path


@contextlib.contextmanager
def temporary(path: Path, make: Callable[[Path], object] = Path.touch) -> Iterator[Path]:
    """A temporary file or folder for `path`, made by `make` and removed at the end of the block.

    Its name has the machine, the process and the thread. Those of processes of this machine that have ended are
    removed first.

    Raises:
        OSError: of `make`.
    """
    own = f".{path.name}.{platform.node()}."
    name = path.with_name(f"{own}{os.getpid()}.{threading.get_native_id()}.tmp")
    for left in path.parent.glob(f"{glob.escape(own)}*.tmp") if os.path.exists("/proc/self") else ():
        if not os.path.exists(f"/proc/{left.name.removeprefix(own).partition('.')[0]}"):
            remove(left)
    remove(name)  # of an earlier process with our numbers
    try:
        make(name)
        yield name
    finally:
        remove(name)


def remove(path: Path) -> None:
    """Remove a file or a folder, or what can be of it."""
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):  # a folder, or a file that has been renamed
        path.unlink()


def _target(path: str | os.PathLike[str]) -> Path:
    path = behind_links(path_of(path, "the name of a file to write"))
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected the name of a file to write")
    return path


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """A block that writes a path: its OSErrors are InputErrors, except that of a pipe whose reader has gone."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> InputError:
    remedy = "make room or choose another disk" if no_space(error) else "choose a folder that exists and can be written"
    return InputError(f"{path}: cannot be written ({error.strerror or error}); {remedy}")


# Reading: gzip by name.


def check_rereadable(path: Path) -> None:
    """Raise InputError for a pipe or a device, whose content can be read once."""
    if _is_device(path):
        raise InputError(f"{path}: is a pipe or a device, which cannot be read twice; write its content to a file")


@contextlib.contextmanager
def _reading(path: str | os.PathLike[str], what: str = "file") -> Iterator[None]:
    """A block that reads a file: its errors are InputErrors."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: no such {what}; check the path") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, expected a {what}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a whole gzip file ({error}); get it again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


@contextlib.contextmanager
def open_bytes(path: str | os.PathLike[str], what: str = "file") -> Iterator[IO[bytes]]:
    """A stream of the content of a file, decompressed if its name ends in .gz; what: the kind of file, for messages.

    Raises:
        InputError: a missing or unreadable file, a folder, damaged gzip, gzip of another name; also in the block.
    """
    path = path_of(path, f"a {what}")
    with _reading(path, what):
        check_rereadable(path)
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as stream:
            if path.suffix != ".gz" and stream.peek(2)[:2] == b"\x1f\x8b":
                raise InputError(f"{path}: is gzip, but its name does not end in .gz; rename it to {path.name}.gz")
            yield stream  # type: ignore[misc]


def read_text(path: str | os.PathLike[str], what: str = "file") -> str:
    """The content of a UTF-8 file without a byte order mark, decompressed if its name ends in .gz.

    Raises:
        InputError: as `open_bytes`; not UTF-8, or a NUL byte (with the line of the first).
    """
    return "".join(line for _, line in read_lines(path, what, end=""))


def read_lines(
    path: str | os.PathLike[str], what: str = "file", errors: str = "strict", end: str = "\n"
) -> Iterator[tuple[int, str]]:
    """The lines of a text file, without their `end`, with their numbers from 1, as a stream; errors as `read_text`.

    errors: "replace" replaces bytes that are not UTF-8 by U+FFFD.
    """
    with open_bytes(path, what) as stream:
        for number, content in enumerate(stream, 1):
            if b"\0" in content:
                check_no_nul(content, path, number)
            try:
                line = content.decode(errors=errors)
            except UnicodeDecodeError:
                raise InputError(f"{path}:{number}: not UTF-8 text; expected a {what} in UTF-8") from None
            yield number, (line.removeprefix("\ufeff") if number == 1 else line).removesuffix(end)


def check_no_nul(content: bytes, path: str | os.PathLike[str], line: int = 1) -> None:
    """Raise InputError for a NUL byte, which ends a text for some programs; line: of the first byte."""
    if b"\0" in content:
        number = line + content.partition(b"\0")[0].count(b"\n")
        raise InputError(f"{path}:{number}: a NUL byte; expected text, get or write the file again")


def first_line(path: str | os.PathLike[str]) -> str:
    """The first line of a text file that is not blank, or ""; replaces bytes that are not UTF-8."""
    return next((text for _, line in read_lines(path, errors="replace") if (text := line.strip())), "")


# Digests.


def fingerprint(*parts: Any) -> str:
    """16 hexadecimal digits of values (JSON-serialisable, or bytes); equal values have equal digits."""
    digest = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode()
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()[:16]


def file_digest(path: Path, *, known: bool = True) -> str:
    """The SHA-256 of a file; known: take a kept one while size and times are the same.

    Raises:
        InputError: missing or unreadable.
    """
    with _reading(path):
        check_rereadable(path)
        status = path.stat()
        times = status.st_mtime_ns, status.st_ctime_ns
        kept = cache_home() / "digests" / fingerprint(str(path.resolve()), status.st_size, *times)
        with contextlib.suppress(OSError):
            if known:
                return kept.read_text(encoding="utf-8")
        with open(path, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if time.time_ns() - max(times) > SETTLED:
            with contextlib.suppress(OSError, InputError):  # a cache that cannot be written costs time alone
                kept.parent.mkdir(parents=True, exist_ok=True)
                with write_atomically(kept) as cache:
                    cache.write(digest.encode())
        return digest


def files_digest(files: Iterable[Path], folder: Path) -> str:
    """The SHA-256 of the names, within a folder, and the contents of files, in any order; errors as `file_digest`."""
    lines = sorted(f"{file.relative_to(folder).as_posix()} {file_digest(file)}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


KeyPath = tuple[str | int, ...]  # keys and positions from the root of a YAML document
DEEPEST = 100  # mappings and lists of YAML in one another


def read_json(path: str | os.PathLike[str], what: str = "file", repair: str = "get or write it again") -> Any:
    """The content of a JSON file; InputError: missing, or not JSON, with the line.

    what: the kind of file; repair: the remedy; both for messages.
    """
    return parse_json(read_text(path, what), str(path), f"; {repair}", by_line=True)


def parse_json(text: str, where: str, repair: str = "", by_line: bool = False) -> Any:
    """The value of a JSON text at `where`, or from its line 1 on (`by_line`); InputError: not JSON."""
    try:
        value = json.loads(text, object_pairs_hook=_distinct)
        if "\\u" in text and "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no character
        return value
    except (ValueError, RecursionError) as error:
        line = f":{error.lineno}" if by_line and isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"{where}{line}: not JSON ({error}){repair}") from None


def parse_record(text: str, where: str, expected: str = "an object") -> dict[str, Any]:
    """The JSON object of a line at `where`; InputError: not JSON, or no object."""
    return checked_record(parse_json(text, where), where, expected)


def checked_record(value: Any, where: str, expected: str = "an object") -> dict[str, Any]:
    """The value of a JSON text if it is an object; InputError: another value."""
    if not isinstance(value, dict):
        raise InputError(f"{where}: a JSON {type(value).__name__}; expected {expected}")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {max(keys, key=keys.count)} stands there a second time")
    return values


def read_yaml(path: str | os.PathLike[str], what: str = "file") -> Any:
    """The content of a YAML file; InputError: missing, not YAML, a repeated key, with the line."""
    return parse_yaml(read_text(path, what), path)[0]


def parse_yaml(text: str, path: str | os.PathLike[str]) -> tuple[Any, dict[KeyPath, int]]:
    """Content, and the line of every path of keys, except of those within an alias.

    InputError: as `read_yaml`.
    """
    try:
        if len(text) > 50 * DEEPEST:
            _check_depth(text)
        loader = _loader()(text)
        lines: dict[KeyPath, int] = {(): 1}
        root = loader.get_single_node()
        if root is not None:
            _note(root, (), 1, lines, set())
        return None if root is None else loader.construct_document(root), lines
    except Exception as error:  # a value that its tag does not fit fails in as many ways as there are tags
        mark = getattr(error, "problem_mark", None)
        line = mark.line if mark else text.count("\n", 0, getattr(error, "position", 0))
        said = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise InputError(f"{path}:{line + 1}: not YAML ({said})") from None


def _check_depth(text: str) -> None:
    """Raise an error for YAML that is nested so deep that libyaml would overrun the stack."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=_loader()):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            mark: Any = event.start_mark
            raise yaml.MarkedYAMLError(problem=f"nested more than {DEEPEST} deep", problem_mark=mark)


@functools.cache
def _loader() -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml's is 8 times as fast
        yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012

    for tag, word in _WORDS.items():
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{word})$"), None)
    return Loader


def _note(node: Any, path: KeyPath, line: int, lines: dict[KeyPath, int], known: set[Any]) -> None:
    """Note the lines of a node and of those in it, once for each node."""
    lines[path] = line
    if node in known:
        return
    known.add(node)
    entries = node.value if node.id == "mapping" else [(None, one) for one in node.value if node.id == "sequence"]
    keys = set[Any]()
    for number, (key, value) in enumerate(entries):
        name = number if key is None else key.value if key.id == "scalar" else None
        if name is None or name in keys:
            import yaml

            problem = "a key that is no text" if name is None else f"key {name} stands here a second time"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        keys.add(name)
        _note(value, (*path, name), (key or value).start_mark.line + 1, lines, known)


_WORDS = {  # tag → its plain words
    "null": "~|null|Null|NULL|",
    "bool": "true|True|TRUE|false|False|FALSE",
    "int": "[-+]?(0|[1-9][0-9]*|0x[0-9a-fA-F]+)",
    "float": r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    "merge": "<<",
}


# The files of an index: size and SHA-256 of each in its description, compared where it is opened.


def names_in(folder: Path) -> set[str]:
    """The files in a folder and below, by their names in it; not an index's description, Lucene's lock, hidden ones."""
    files = (path.relative_to(folder) for path in folder.rglob("[!.]*") if path.is_file() and path.name != "write.lock")
    return {path.as_posix() for path in files if str(path) != DESCRIPTION}


def note_files(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The entries of the description for files just written: name → bytes and sha256."""
    return {
        name: {"bytes": (folder / name).stat().st_size, "sha256": file_digest(folder / name)} for name in sorted(names)
    }


def check_files(index: Path, *groups: str) -> None:
    """Check that the docids and the files of some parts are unchanged.

    groups: parts of the index, or `TEXTS`. Passes if the description lists no files.

    Raises:
        InputError: a missing or changed file; a description of another form.
    """
    path = index / DESCRIPTION
    described = read_json(path, repair="make the index again") if path.is_file() else {}
    noted = noted_files(described, path) if isinstance(described, dict) else {}  # `describe` says what it is
    if wrong := check_whole(index, {group: noted.get(group, {}) for group in (DOCIDS, *groups)}, known=True):
        raise InputError(f"{wrong[0]}; {AGAIN}")


def check_whole(index: Path, groups: Groups, known: bool = False) -> list[str]:
    """The problems of all changed files of an index; known: take digests that are kept, else read all files."""
    files = sorted(entry for group in groups.values() for entry in group.items())
    return [problem for name, noted in files if (problem := _problem(index / name, noted, known))]


def _problem(path: Path, noted: Mapping[str, Any], known: bool) -> str:
    """The difference of a file from the one that was written, or ""."""
    try:
        size = path.stat().st_size
    except OSError as error:
        return f"{path}: cannot be read ({error.strerror or error}), but was written with the index"
    if not path.is_file() or size != noted["bytes"]:
        return f"{path}: has {size} bytes, but was written with {noted['bytes']}"
    same = file_digest(path, known=known) == noted["sha256"]
    return "" if same else f"{path}: its bytes are not those that were written"


def noted_files(described: Mapping[str, Any], path: Path) -> Groups:
    """The files of a description of an index; empty if it lists none; InputError: entries without bytes and sha256."""
    groups = described.get("files", {})
    with contextlib.suppress(AttributeError, TypeError):  # of a value that is no mapping
        if all({"bytes", "sha256"} == {*noted} for group in groups.values() for noted in group.values()):
            return groups
    raise InputError(f"{path}: files are not noted as this version does, by bytes and sha256; {AGAIN}")
