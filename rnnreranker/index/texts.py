"""The texts of an index: a JSON document a line, as in Pyserini's JsonCollection, and a table to find a few quickly.

`corpus/documents.jsonl` holds {"id", "contents"} in the order of the rows; `corpus/offsets.npy` holds, sorted by a hash
of the docid, where each line begins, so that looking up a handful of docids reads little more than their lines.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import weakref
from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

import numpy as np

from rnnreranker.data.document import Document
from rnnreranker.errors import InputError
from rnnreranker.files.checksums import TEXTS, check_files
from rnnreranker.files.json_files import parse_record
from rnnreranker.vectors.npy_files import map_array, write_array

FOLDER = "corpus"
ENTRY = np.dtype([("hash", "<u8"), ("offset", "<i8")])


class CorpusWriter:
    """Writes `corpus/` inside an index folder while documents stream by; used as a context manager."""

    def __init__(self, index: Path) -> None:
        self._folder = index / FOLDER
        self._hashes = array("Q")
        self._offsets = array("q")
        self._at = 0

    def __enter__(self) -> CorpusWriter:
        self._folder.mkdir(parents=True)
        self._stream: IO[bytes] = open(self._folder / "documents.jsonl", "wb")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self._stream.close()
        if kind is None:
            table = np.empty(len(self._hashes), dtype=ENTRY)
            table["hash"], table["offset"] = self._hashes, self._offsets
            with open(self._folder / "offsets.npy", "wb") as stream:
                write_array(stream, np.sort(table, order=("hash", "offset")))

    def add(self, document: Document) -> None:
        """Append a document."""
        record = {"id": document.docid, "contents": document.text}
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        self._stream.write(line)
        self._hashes.append(_hash(document.docid))
        self._offsets.append(self._at)
        self._at += len(line)


class Texts(Mapping[str, str]):
    """The texts of an index by docid; each is read when it is asked for.

    Args:
        index: a folder written by `python -m rnnreranker.index`.

    Raises:
        InputError: an index without texts, or with files that do not fit together.
    """

    def __init__(self, index: str | os.PathLike[str]) -> None:
        folder = Path(index).expanduser() / FOLDER
        check_files(folder.parent, TEXTS)
        try:
            if not (folder / "offsets.npy").exists():
                raise FileNotFoundError(errno.ENOENT, "", str(folder / "offsets.npy"))
            self._table = map_array(folder / "offsets.npy", "build the index again")
            self._stream = open(folder / "documents.jsonl", "rb")  # noqa: SIM115  closed with the object
        except FileNotFoundError as error:
            raise InputError(
                f"{error.filename}: no such file, so the texts are not kept in this index; make it with "
                "python -m rnnreranker.index"
            ) from None
        except OSError as error:
            raise InputError(f"{error.filename}: cannot be read ({error.strerror}); build the index again") from None
        if self._table.dtype != ENTRY or self._table.ndim != 1:
            raise InputError(
                f"{folder / 'offsets.npy'}: has shape {self._table.shape} and type {self._table.dtype}; "
                "build the index again"
            )
        hashes = self._table["hash"]
        if (hashes[1:] < hashes[:-1]).any():
            raise InputError(f"{folder / 'offsets.npy'}: its hashes do not ascend; build the index again")
        weakref.finalize(self, self._stream.close)

    def __getitem__(self, docid: str) -> str:
        wanted = np.uint64(_hash(docid))
        place = int(np.searchsorted(self._table["hash"], wanted))
        while place < len(self._table) and self._table["hash"][place] == wanted:  # several only when hashes collide
            record = _read(self._stream, int(self._table["offset"][place]))
            if record["id"] == docid:
                return record["contents"]
            place += 1
        raise KeyError(docid)

    def __iter__(self) -> Iterator[str]:
        return (_read(self._stream, int(offset))["id"] for offset in np.sort(self._table["offset"]))

    def __len__(self) -> int:
        return len(self._table)


def documents_of(index: Path) -> Iterator[Document]:
    """The documents of an index in the order of their rows.

    Raises:
        InputError: an index without texts, or with a line that is no document.
    """
    check_files(index, TEXTS)
    try:
        stream = open(index / FOLDER / "documents.jsonl", "rb")  # noqa: SIM115  closed below
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}); build the index again") from None
    with stream:
        while stream.peek(1):
            record = _read(stream, stream.tell())
            yield Document(record["id"], record["contents"])


def texts_of(index: str | os.PathLike[str], docids: Iterable[str]) -> dict[str, str]:
    """The texts of some documents of an index, by docid; docids that the index does not have are left out.

    Args and Raises: as `Texts`; docids: the documents wanted.
    """
    texts, wanted = Texts(index), dict.fromkeys(docids)
    found = {docid: texts.get(docid) for docid in wanted}
    return {docid: text for docid, text in found.items() if text is not None}


def _read(stream: IO[bytes], offset: int) -> dict[str, str]:
    where = f"{stream.name}: no document at byte {offset}"
    if offset < 0:
        raise InputError(f"{where} where offsets.npy has one; build the index again")
    try:
        stream.seek(offset)
        line = stream.readline()
        if offset and not line.startswith(b"{"):  # in the middle of a line may stand what looks like a document
            raise ValueError("no beginning of a line")
        record = parse_record(line.decode(), where)
    except (ValueError, OSError):  # none where no file can have a byte either
        raise InputError(f"{where} where offsets.npy has one; build the index again") from None
    if not isinstance(record.get("id"), str) or not isinstance(record.get("contents"), str):
        raise InputError(f"{where}, but an object without the texts id and contents; build the index again")
    return {"id": record["id"], "contents": record["contents"]}


def _hash(docid: str) -> int:
    return int.from_bytes(hashlib.blake2b(docid.encode(), digest_size=8).digest(), "little")
