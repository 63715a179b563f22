"""Row numbers and ids: files with one id a line, and look-ups of rows by id."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import phase
from rnnreranker.base.errors import InputError, ids_of, require
from rnnreranker.base.files import cache_home, fingerprint, folder_written_whole, read_json, read_text, write_json
from rnnreranker.parts.vectors.npy_files import map_array, put_array
from rnnreranker.runs.columns import are_words, check_id

LARGE = 2**22  # bytes of a file from which a table of its ids is kept
BLOCK = 2**20  # ids that are decoded at a time
PADDED = 8  # bytes of a table for each of the file, at most: one long id makes all of them long
LAYOUT = 3  # of the files of a table
BASIS, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # of FNV-1a


class Ids:
    """The ids of rows 0..n-1, and the row of every id. origin: their file, for errors."""

    def __init__(self, names: Sequence[str], origin: str) -> None:
        self.names, self.origin = names, origin

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def mark(self) -> str:
        """The fingerprint of the ids."""
        return fingerprint("\n".join(self.names).encode())

    def rows(self, names: Sequence[str]) -> np.ndarray:
        """(n,) int64: the row of each id, -1 if unknown; InputError: no list of ids."""
        return np.array([self._row_of.get(name, -1) for name in ids_of(names, "docids")], dtype=np.int64)

    @cached_property
    def docid_ranks(self) -> np.ndarray:
        """(N,) int64: the rank of each row among the sorted ids."""
        return np.argsort(np.array(sorted(range(len(self.names)), key=self.names.__getitem__), dtype=np.int64))

    def check(self) -> Ids:
        """Raise InputError for an id that is empty, has white space or control characters, or is on two lines."""
        line_of: dict[str, int] = {}
        for line, name in enumerate(self.names, 1):
            if not name:
                raise InputError(f"{self.origin}:{line}: empty line; expected one id a line")
            check_id(name, "id", f"{self.origin}:{line}")
            if (first := line_of.setdefault(name, line)) != line:
                raise InputError(f"{self.origin}:{line}: {name} is already on line {first}; every row needs its own id")
        return self


class IdTable(Ids, Sequence[str]):
    """N ids in memory-mapped files: the time to open them does not depend on N.

    Args:
        folder: `names.npy`, (N,) bytes, padded to one length; `hashes.npy`, (N,) uint64, sorted; `rows.npy`, (N,) the
            row of each hash; `mark`, the fingerprint of the ids.
    """

    def __init__(self, folder: Path, origin: str) -> None:
        super().__init__(self, origin)
        self._folder, self.mark = folder, (folder / "mark").read_text()
        arrays = (np.asarray(map_array(folder / f"{name}.npy")) for name in ("names", "hashes", "rows"))
        self._names, self._hashes, self._rows = arrays

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, row: Any) -> Any:
        names = self._names[row]
        return [name.decode() for name in names.tolist()] if isinstance(row, slice) else names.decode()

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), BLOCK):
            yield from self[first : first + BLOCK]

    def rows(self, names: Sequence[str]) -> np.ndarray:
        encoded = [name.encode() for name in ids_of(names, "docids")]
        hashes = byte_hashes(np.array(encoded, dtype=self._names.dtype), BASIS, PRIME)
        order = np.argsort(hashes)  # neighbouring hashes are looked up in neighbouring memory
        at = np.empty(len(encoded), dtype=np.int64)
        at[order] = np.minimum(np.searchsorted(self._hashes, hashes[order]), len(self) - 1)
        rows = self._rows[at].astype(np.int64)
        same = self._names[rows] == np.array(encoded, dtype=f"S{self._names.dtype.itemsize + 1}")  # none is cut to fit
        return np.where(same, rows, -1)

    @cached_property
    def docid_ranks(self) -> np.ndarray:
        if not (file := self._folder / "ranks.npy").is_file():
            put_array(file, np.argsort(np.argsort(self._names)))
        return map_array(file)


class Reopened:
    """What another process opens itself. `opened`: a function and its arguments; None = the object is pickled."""

    opened: tuple[Callable[..., Any], tuple[Any, ...]] | None = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        return super().__reduce_ex__(protocol) if self.opened is None else self.opened


class HasDocids(Reopened):
    """Something with a row for each of N documents. `docids`: row → docid; table: these and their rows."""

    def __init__(self, ids: Ids) -> None:
        self.table, self.docids = ids, ids.names

    def rows(self, docids: Sequence[str]) -> np.ndarray:
        """(n,) int64: the row of each docid, -1 if unknown."""
        return self.table.rows(docids)

    @property
    def docid_ranks(self) -> np.ndarray:
        return self.table.docid_ranks


def read_ids(path: Path) -> Ids:
    """The ids in a text file, one a line; the cache folder keeps an `IdTable` of a large file.

    Raises:
        InputError: no such file, an empty line, an id twice, with white space or a control character.
    """
    with contextlib.suppress(OSError, ValueError, InputError):  # the list of ids is the same, or says what is wrong
        status = path.stat()
        if path.is_file() and status.st_size >= LARGE:
            stamp = [LAYOUT, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
            folder = cache_home() / "ids" / fingerprint(str(path.resolve()))
            if not folder.is_dir() or read_json(folder / "stamp.json") != stamp:
                with phase(f"table of {path.name}"), folder_written_whole(folder) as begun:
                    _write_table(_lines(path), begun)
                    write_json(begun / "stamp.json", stamp)
            return IdTable(folder, str(path))
    text = _lines(path)
    return Ids(text.split("\n") if text else [], str(path)).check()


def _lines(path: Path) -> str:
    return read_text(path, "file of ids, one a line").replace("\r\n", "\n").removesuffix("\n")


def byte_hashes(names: np.ndarray, basis: Any, prime: Any) -> np.ndarray:
    """(n,) FNV-1a hashes of (n,) padded bytes in the type of basis and prime."""
    hashes = np.full(len(names), basis)
    for column in names.view(np.uint8).reshape(len(names), names.dtype.itemsize).T:
        hashes = np.where(column != 0, (hashes ^ column) * prime, hashes)
    return hashes


def _write_table(text: str, folder: Path) -> None:
    """Write the files of an `IdTable`; ValueError: ids that are none or twice, or of very different lengths."""
    content = text.encode()
    listed = content.split(b"\n")
    if not (all(listed) and are_words([text.replace("\n", "")])):
        raise ValueError("an id that is none")
    if max(map(len, listed)) * len(listed) > PADDED * len(content):
        raise ValueError("ids of very different lengths")
    names = np.array(listed)
    hashes = byte_hashes(names, BASIS, PRIME)
    rows = np.argsort(hashes, kind="stable")
    hashes = hashes[rows]
    if (hashes[1:] == hashes[:-1]).any():
        raise ValueError("an id twice, or two of one hash")
    for name, array in (("names", names), ("hashes", hashes), ("rows", rows.astype(np.uint32))):
        put_array(folder / f"{name}.npy", array)
    (folder / "mark").write_text(fingerprint(content))


def docnos_of(folder: Path, *first: Path) -> tuple[Ids, Path]:
    """The docids of a folder of PyTerrier's and their file: one of `first`, a file of lines, or `docnos.npids`.

    Raises:
        InputError, MissingDependencyError: no docids there; no package npids.
    """
    for file in (*first, *(folder / name for name in ("docnos", "docnos.txt", "docid"))):
        if file.is_file():
            return read_ids(file), file
    packed = folder / "docnos.npids"
    if not packed.is_file():
        raise InputError(f"{packed}: no such file; expected its docids there")
    npids = require("npids", f"reading {packed}", "npids")
    try:
        with warnings.catch_warnings(action="ignore"), npids.Lookup(str(packed)) as lookup:  # that it may be too new
            names = [str(name) for name in lookup.fwd]
    except Exception as error:  # npids does not say what it raises on a file that is not its own
        raise InputError(
            f"{packed}: npids cannot read it ({' '.join(str(error).split())[:80]}); copy it again"
        ) from None
    return Ids(names, str(packed)).check(), packed
