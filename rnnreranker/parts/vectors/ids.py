"""Row numbers and ids: the file with one id a line, and look-ups of rows by id."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import cache_home, fingerprint, folder_written_whole, read_text
from rnnreranker.base.given import ids_of
from rnnreranker.base.process.phases import phase
from rnnreranker.parts.vectors.npy_files import map_array, put_array
from rnnreranker.runs.arrow import as_numpy, strings
from rnnreranker.runs.columns import are_words, check_id

LARGE = 2**22  # bytes of a file from which a table of its ids is kept
BLOCK = 2**20  # ids that are decoded at a time
PADDED = 8  # bytes of a table for each of the file, at most: one long id makes all of them long
LAYOUT = 2  # of the files of a table
BASIS, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # of FNV-1a


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
        except (TypeError, AttributeError):  # no list, or elements that no id can be
            return self.rows(ids_of(names, "docids"))

    @cached_property
    def docid_ranks(self) -> np.ndarray:
        """(N,) int64: the rank of each row among the sorted ids."""
        if isinstance(self.names, IdTable):
            return self.names.ranks()
        import pyarrow.compute

        return _inverse(as_numpy(pyarrow.compute.sort_indices(strings(self.names))))

    def check(self) -> None:
        """Raise InputError for an id that is empty, has white space or control characters, or is on two lines."""
        line_of: dict[str, int] = {}
        for line, name in enumerate(self.names, 1):
            if not name:
                raise InputError(f"{self._origin}:{line}: empty line; expected one id a line")
            check_id(name, "id", f"{self._origin}:{line}")
            if (first := line_of.setdefault(name, line)) != line:
                raise InputError(
                    f"{self._origin}:{line}: {name} is already on line {first}; every row needs its own id"
                )


class IdTable(Sequence[str]):
    """N ids in memory-mapped files: the time to open them does not depend on N.

    Args:
        folder: `names.npy`, (N,) bytes, padded to one length; `hashes.npy`, (N,) uint64, sorted; `rows.npy`, (N,) the
            row of each hash; `mark`, the fingerprint of the ids.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self.mark = folder, (folder / "mark").read_text()
        arrays = (np.asarray(map_array(folder / f"{name}.npy")) for name in ("names", "hashes", "rows"))
        self._names, self._hashes, self._rows = arrays

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [name.decode() for name in self._names[row].tolist()]
        return self._names[row].decode()

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), BLOCK):
            yield from self[first : first + BLOCK]

    def rows(self, names: Sequence[str]) -> np.ndarray:
        encoded = [name.encode() for name in names]
        rows = np.full(len(encoded), -1, dtype=np.int64)
        if encoded:
            wanted = np.array(encoded, dtype=self._names.dtype)
            hashes = byte_hashes(wanted, BASIS, PRIME)
            order = np.argsort(hashes)  # neighbouring hashes are looked up in neighbouring memory
            at = np.empty_like(rows)
            at[order] = np.minimum(np.searchsorted(self._hashes, hashes[order]), len(self) - 1)
            proposed = self._rows[at]
            listed, lengths = self._names[proposed], np.fromiter(map(len, encoded), np.int64, len(encoded))
            same = (listed == wanted) & (np.char.str_len(listed) == lengths)  # longer ones were cut, as padding is
            rows[same] = proposed[same]
        return rows

    def ranks(self) -> np.ndarray:
        file = self._folder / "ranks.npy"
        if not file.is_file():
            put_array(file, _inverse(np.argsort(self._names)))
        return map_array(file)


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


class Reopened:
    """What another process opens itself. `opened`: a function and its arguments; None = the object is pickled."""

    opened: tuple[Callable[..., Any], tuple[Any, ...]] | None = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        return super().__reduce_ex__(protocol) if self.opened is None else self.opened


class HasDocids(Reopened):
    """Something with a row for each of N documents. `docids`: row → docid."""

    def __init__(self, ids: Ids) -> None:
        self._ids, self.docids = ids, ids.names

    def rows(self, docids: Sequence[str]) -> np.ndarray:
        """(n,) int64: the row of each docid, -1 if unknown."""
        return self._ids.rows(docids)

    @property
    def docid_ranks(self) -> np.ndarray:
        return self._ids.docid_ranks


def read_ids(path: Path) -> Ids:
    """The ids in a text file, one a line; the cache folder keeps an `IdTable` of a large file.

    Raises:
        InputError: no such file, an empty line, an id twice, with white space or a control character.
    """
    if (table := _table(path)) is not None:
        return Ids(table, str(path))
    text = _lines(path)
    ids = Ids(text.removesuffix("\n").split("\n") if text else [], str(path))
    ids.check()
    return ids


def _lines(path: Path) -> str:
    return read_text(path, "file of ids, one a line").replace("\r\n", "\n")


def positions_of(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the entries of some rows, (p,) int64, row after row, and their (n + 1,) offsets.

    >>> positions_of(np.array([0, 2, 3, 6]), np.array([2, 0]))
    (array([3, 4, 5, 0, 1]), array([0, 3, 5]))
    """
    starts, lengths = offsets[rows], offsets[rows + 1] - offsets[rows]
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths), ends


def byte_hashes(names: np.ndarray, basis: Any, prime: Any) -> np.ndarray:
    """(n,) FNV-1a hashes of (n,) padded bytes, n >= 1, in the type of basis and prime."""
    hashes = np.full(len(names), basis)
    for column in names.view(np.uint8).reshape(len(names), -1).T:
        hashes = np.where(column != 0, (hashes ^ column) * prime, hashes)
    return hashes


def _table(path: Path) -> IdTable | None:
    """The table of a large file in the cache folder, made for its size and time; None if it has no valid, distinct
    ids.
    """
    try:
        status = path.stat()
        if not path.is_file() or status.st_size < LARGE:
            return None
        name = fingerprint(str(path.resolve()))
        stamp = fingerprint(LAYOUT, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        folder = cache_home() / "ids" / f"{name}-{stamp}"
        if not folder.is_dir():
            with phase(f"table of {path.name}"), folder_written_whole(folder) as begun:
                _write_table(path, begun)
            for other in folder.parent.glob(f"{name}-*"):
                if other != folder:
                    shutil.rmtree(other, ignore_errors=True)
        return IdTable(folder)
    except (OSError, ValueError, InputError):  # the list of ids is the same, or says what is wrong
        return None


def _write_table(path: Path, folder: Path) -> None:
    text = _lines(path).removesuffix("\n")
    if not all(text.split("\n")) or not are_words([text.replace("\n", "")]):
        raise ValueError("an id that is none")
    content = text.encode()
    letters = np.frombuffer(content + b"\n", dtype=np.uint8)
    lengths = np.diff(np.flatnonzero(letters == ord("\n")), prepend=-1) - 1
    width = int(lengths.max())
    if width * len(lengths) > PADDED * len(letters):
        raise ValueError("ids of very different lengths")
    padded = np.zeros((len(lengths), width), dtype=np.uint8)
    padded[np.arange(width) < lengths[:, None]] = letters[letters != ord("\n")]
    names = padded.view(f"S{width}")[:, 0]
    hashes = byte_hashes(names, BASIS, PRIME)
    rows = np.argsort(hashes, kind="stable")
    hashes = hashes[rows]
    if (hashes[1:] == hashes[:-1]).any():
        raise ValueError("an id twice, or two of one hash")
    for name, array in (("names", names), ("hashes", hashes), ("rows", rows.astype(np.uint32))):
        put_array(folder / f"{name}.npy", array)
    (folder / "mark").write_text(fingerprint(content))


def _inverse(order: np.ndarray) -> np.ndarray:
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks
