"""Row numbers and ids: the file with one id a line, and look-ups of rows by id."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import cache_home, fingerprint, folder_written_whole, open_bytes, read_text
from rnnreranker.base.given import ids_of
from rnnreranker.base.process.phases import phase
from rnnreranker.parts.vectors.npy_files import map_array, put_array
from rnnreranker.runs.arrow import as_numpy, strings
from rnnreranker.runs.columns import are_words, check_id

LARGE = 2**22  # bytes of a file from which a table of its ids is kept
CHUNK = 2**24  # bytes that are read at a time
BLOCK = 2**20  # ids that are hashed at a time
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of one byte of an id to the next in its hash


class Ids:
    """The ids of rows 0..n-1, and the row of every id."""

    def __init__(self, names: Sequence[str], origin: str) -> None:
        self.names = names
        self._origin = origin

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    def rows(self, names: Sequence[str]) -> np.ndarray:
        """(n,) int64: the row of each id, -1 if unknown; InputError: no list of ids."""
        try:
            if isinstance(names, str | bytes | Mapping):
                raise TypeError  # they have elements too
            if isinstance(self.names, IdTable):
                return self.names.rows(names)
            row_of = self._row_of.get
            return np.fromiter((row_of(name, -1) for name in names), dtype=np.int64, count=len(names))
        except TypeError:  # no list, or elements that no id can be
            return self.rows(ids_of(names, "docids"))

    @cached_property
    def docid_ranks(self) -> np.ndarray:
        if isinstance(self.names, IdTable):
            return self.names.ranks()
        return _ranks(strings(self.names))

    def check(self) -> None:
        """Raise InputError for an id that is empty, has white space or control characters, or is on two lines."""
        for line, name in enumerate(self.names, 1):
            if not name:
                raise InputError(f"{self._origin}:{line}: empty line; expected one id a line")
            check_id(name, "id", f"{self._origin}:{line}")
        if len(self._row_of) < len(self.names):
            first = dict(zip(reversed(self.names), range(len(self.names), 0, -1), strict=True))
            line, name = next((line, name) for line, name in enumerate(self.names, 1) if first[name] != line)
            raise InputError(
                f"{self._origin}:{line}: {name} is already on line {first[name]}; every row needs its own id"
            )


class LookedUp(Sequence[str]):
    """N ids by row, each looked up when it is read."""

    def __init__(self, id_of: Callable[[int], str], count: int) -> None:
        self._id_of, self._rows_of = id_of, range(count)

    def __len__(self) -> int:
        return len(self._rows_of)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return list(map(self._id_of, self._rows_of[row]))
        return self._id_of(self._rows_of[row])


class IdTable(LookedUp):
    """N ids in memory-mapped files: the time to open them does not depend on N.

    Args:
        folder: `lines`, the ids, each with a line feed; `starts.npy`, (N + 1,) int64, the start of each id;
            `hashes.npy`, (N,) uint64, sorted; `rows.npy`, (N,) the row of each hash.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines = np.asarray(np.memmap(folder / "lines", np.uint8, "r"))
        arrays = (np.asarray(map_array(folder / f"{name}.npy")) for name in ("starts", "hashes", "rows"))
        self._starts, self._hashes, self._rows = arrays
        super().__init__(self._id, len(self._rows))

    def _id(self, row: int) -> str:
        return self._lines[self._starts[row] : self._starts[row + 1] - 1].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), BLOCK):
            begin, *_, end = self._starts[first : first + BLOCK + 1]
            yield from self._lines[begin:end].tobytes().decode().split("\n")[:-1]

    def content(self) -> bytes:
        return self._lines[:-1].tobytes()

    def rows(self, names: Sequence[str]) -> np.ndarray:
        rows = np.full(len(names), -1, dtype=np.int64)
        lines = np.frombuffer(("\n".join(names) + "\n").encode(), dtype=np.uint8)
        starts = _starts(lines)
        if len(names) and len(starts) - 1 != len(names):  # a line feed inside an id, which no line has
            return self.rows([name.replace("\n", " ") for name in names])
        if len(names):
            hashes = _hashes(lines, starts)
            order = np.argsort(hashes)  # neighbouring hashes are looked up in neighbouring memory
            at = np.empty(len(names), dtype=np.int64)
            at[order] = np.minimum(np.searchsorted(self._hashes, hashes[order]), len(self) - 1)
            proposed = self._rows[at].astype(np.int64)
            alike = np.diff(starts) == self._starts[proposed + 1] - self._starts[proposed]
            alike = np.flatnonzero(alike & (self._hashes[at] == hashes))
            mine, _ = positions_of(starts, alike)
            theirs, ends = positions_of(self._starts, proposed[alike])
            if len(alike):
                alike = alike[np.logical_and.reduceat(lines[mine] == self._lines[theirs], ends[:-1])]
            rows[alike] = proposed[alike]
        return rows

    def ranks(self) -> np.ndarray:
        import pyarrow

        file = self._folder / "ranks.npy"
        if not file.is_file():
            buffers = [None, pyarrow.py_buffer(self._starts), pyarrow.py_buffer(self._lines)]
            put_array(file, _ranks(pyarrow.LargeBinaryArray.from_buffers(pyarrow.large_binary(), len(self), buffers)))
        return map_array(file)


def read_ids(path: Path) -> Ids:
    """The ids in a text file, one a line; the cache folder keeps an `IdTable` of a large file.

    Raises:
        InputError: no such file, an empty line, an id twice, with white space or a control character.
    """
    if (table := _table(path)) is not None:
        return Ids(table, str(path))
    text = read_text(path, "file of ids, one a line")
    names = text.replace("\r\n", "\n").split("\n")
    if names[-1] == "":
        names.pop()
    ids = Ids(names, str(path))
    ids.check()
    return ids


def positions_of(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the entries of some rows, (p,) int64, row after row, and their (n + 1,) offsets.

    >>> positions_of(np.array([0, 2, 3, 6]), np.array([2, 0]))
    (array([3, 4, 5, 0, 1]), array([0, 3, 5]))
    """
    starts, lengths = offsets[rows], offsets[rows + 1] - offsets[rows]
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths), ends


def _table(path: Path) -> IdTable | None:
    """The table of a large file in the cache folder, made for its size and time; None if it has no valid, distinct
    ids.
    """
    try:
        status = path.stat()
        if not path.is_file() or status.st_size < LARGE:
            return None
        name = fingerprint(str(path.resolve()))
        stamp = fingerprint(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        folder = cache_home() / "ids" / f"{name}-{stamp}"
        if folder.is_dir():
            return IdTable(folder)
        with phase(f"table of {path.name}"), folder_written_whole(folder) as begun:
            _write_table(path, begun)
        for other in folder.parent.glob(f"{name}-*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
        return IdTable(folder)
    except (OSError, ValueError, InputError):  # the list of ids is the same, or says what is wrong
        return None


def _write_table(path: Path, folder: Path) -> None:
    with open(folder / "lines", "wb") as stream, open_bytes(path) as content:
        while chunk := content.read(CHUNK) + content.readline():
            text = chunk.decode().removeprefix("" if stream.tell() else "\ufeff").replace("\r\n", "\n")
            text = text.removesuffix("\n") + "\n"
            if "\n\n" in text or text[0] == "\n" or not are_words([text.replace("\n", "")]):
                raise ValueError("an id that is none")
            stream.write(text.encode())
    lines = np.memmap(folder / "lines", np.uint8, "r")
    starts = np.concatenate([_starts(lines[at : at + CHUNK])[bool(at) :] + at for at in range(0, len(lines), CHUNK)])
    parts = [starts[first : first + BLOCK + 1] for first in range(0, len(starts) - 1, BLOCK)]
    hashes = np.concatenate([_hashes(lines[part[0] : part[-1]], part - part[0]) for part in parts])
    rows = np.argsort(hashes, kind="stable")
    hashes = hashes[rows]
    if (hashes[1:] == hashes[:-1]).any():
        raise ValueError("an id twice, or two of one hash")
    for name, array in (("starts", starts), ("hashes", hashes), ("rows", rows.astype(np.uint32))):
        put_array(folder / f"{name}.npy", array)


def _starts(lines: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.flatnonzero(lines == ord("\n")) + 1])


def _hashes(lines: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """(n,) uint64: a hash of each of n >= 1 lines."""
    lengths = np.diff(starts)
    powers = np.cumprod(np.full(lengths.max(), FACTOR))
    values = np.random.default_rng(0).integers(2**64, size=256, dtype=np.uint64)
    within = np.arange(len(lines)) - np.repeat(starts[:-1], lengths)
    hashes: np.ndarray = np.add.reduceat(values[lines] * powers[within], starts[:-1])
    return hashes


def _ranks(names: Any) -> np.ndarray:
    import pyarrow.compute

    ranks = np.empty(len(names), dtype=np.int64)
    ranks[as_numpy(pyarrow.compute.sort_indices(names))] = np.arange(len(ranks))
    return ranks
