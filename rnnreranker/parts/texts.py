"""The texts of an index: a JSON document a line, as in Pyserini's JsonCollection, and a table for look-ups.

`corpus/documents.jsonl.gz` holds {"id", "contents"} in the order of the rows, in separately compressed blocks.
`corpus/offsets.npy` holds the offset of each line, sorted by a hash of the docid: the byte of its block in the file
times 2^16, plus the byte within the block.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import weakref
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import IO

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files.checksums import TEXTS, check_files
from rnnreranker.base.files.json_files import parse_record
from rnnreranker.data.document import Document
from rnnreranker.parts.vectors.npy_files import map_array, write_array

FOLDER = "corpus"
BLOCKS = "documents.jsonl.gz"
AGAIN = "build the index again"
BLOCK = 2**15  # bytes of lines from which a block is full; below 2^16
KEPT = 256  # blocks that were read last
CHUNK = 2**14  # bytes that are read at a time
LEVEL = 6  # of compression: 9 takes six times as long for 4 % less
ENTRY = np.dtype([("hash", "<u8"), ("offset", "<i8")])
_IN_GZIP = 31  # of zlib: a member of a gzip file, whose checksum is looked at
_as_json = json.JSONEncoder(ensure_ascii=False).encode


class CorpusWriter:
    """Writes `corpus/` in an index folder; a context manager."""

    def __init__(self, index: Path) -> None:
        self._folder = index / FOLDER
        self._hashes, self._offsets = array("Q"), array("q")
        self._block, self._at = bytearray(), 0

    def __enter__(self) -> CorpusWriter:
        self._folder.mkdir(parents=True)
        self._stream = open(self._folder / BLOCKS, "wb")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if self._block:
            self._write()
        self._stream.close()
        if kind is None:
            table = np.empty(len(self._hashes), dtype=ENTRY)
            table["hash"], table["offset"] = self._hashes, self._offsets
            with open(self._folder / "offsets.npy", "wb") as stream:
                write_array(stream, np.sort(table, order=("hash", "offset")))

    def add(self, document: Document) -> None:
        self._hashes.append(_hash(document.docid))
        self._offsets.append((self._at << 16) + len(self._block))
        line = f'{{"id": {_as_json(document.docid)}, "contents": {_as_json(document.text)}}}\n'
        self._block += line.encode()
        if len(self._block) >= BLOCK:
            self._write()

    def _write(self) -> None:
        self._at += self._stream.write(gzip.compress(bytes(self._block), LEVEL, mtime=0))
        self._block.clear()


class Texts(Mapping[str, str]):
    """The texts of an index by docid; each is read on demand.

    Args:
        index: a folder written by `python -m rnnreranker.index`.

    Raises:
        InputError: an index without texts, or with files that do not fit together.
    """

    def __init__(self, index: str | os.PathLike[str]) -> None:
        folder = Path(index).expanduser() / FOLDER
        self._stream = _opened(folder.parent)
        weakref.finalize(self, self._stream.close)
        self._table = map_array(folder / "offsets.npy", AGAIN)
        if self._table.dtype != ENTRY or self._table.ndim != 1:
            raise InputError(
                f"{folder / 'offsets.npy'}: has shape {self._table.shape} and type {self._table.dtype}; {AGAIN}"
            )
        hashes = self._table["hash"]
        if (hashes[1:] < hashes[:-1]).any():
            raise InputError(f"{folder / 'offsets.npy'}: its hashes do not ascend; {AGAIN}")
        self._block: Callable[[int], tuple[bytes, int]] = lru_cache(KEPT)(partial(_block_at, self._stream))

    def __getitem__(self, docid: str) -> str:
        wanted = np.uint64(_hash(docid))
        line = int(np.searchsorted(self._table["hash"], wanted))
        while line < len(self._table) and self._table["hash"][line] == wanted:  # several only when hashes collide
            record = self._read(int(self._table["offset"][line]))
            if record.docid == docid:
                return record.text
            line += 1
        raise KeyError(docid)

    def __iter__(self) -> Iterator[str]:
        return (self._read(int(offset)).docid for offset in np.sort(self._table["offset"]))

    def __len__(self) -> int:
        return len(self._table)

    def _read(self, offset: int) -> Document:
        start, within = offset >> 16, offset & 0xFFFF
        block = self._block(start)[0] if start >= 0 else b""
        where = f"{self._stream.name}: no document at byte {within} of the block at byte {start}"
        if within >= len(block) or (within and block[within - 1 : within] != b"\n"):
            raise InputError(f"{where} where offsets.npy has one; {AGAIN}")
        return _document(block[within:].partition(b"\n")[0], where)


def documents_of(index: Path) -> Iterator[Document]:
    """The documents of an index in the order of their rows.

    Raises:
        InputError: an index without texts, a damaged block, a line that is no document.
    """
    with _opened(index) as stream:
        size, start = os.fstat(stream.fileno()).st_size, 0
        while start < size:
            block, after = _block_at(stream, start)
            for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), 1):
                yield _document(line, f"{stream.name}: no document on line {number} of the block at byte {start}")
            start = after


def file_of_texts(index: Path) -> Path:
    return index / FOLDER / BLOCKS


def texts_of(index: str | os.PathLike[str], docids: Iterable[str]) -> dict[str, str]:
    """The texts of some documents of an index, by docid; unknown docids are left out.

    Raises:
        InputError: as `Texts`.
    """
    texts = Texts(index)
    text_of = {docid: texts.get(docid) for docid in dict.fromkeys(docids)}
    return {docid: text for docid, text in text_of.items() if text is not None}


def _opened(index: Path) -> IO[bytes]:
    check_files(index, TEXTS)
    try:
        return open(file_of_texts(index), "rb")
    except FileNotFoundError as error:
        raise InputError(
            f"{error.filename}: no such file, so the texts are not kept in this index; make it with "
            "python -m rnnreranker.index"
        ) from None
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}); {AGAIN}") from None


def _block_at(stream: IO[bytes], start: int) -> tuple[bytes, int]:
    """A block, and the start of the next one."""
    unpack, parts, at = zlib.decompressobj(_IN_GZIP), [], start
    try:
        stream.seek(start)
        while not unpack.eof and (chunk := stream.read(CHUNK)):
            parts.append(unpack.decompress(chunk))
            at += len(chunk)
    except (zlib.error, ValueError, OSError):
        unpack = zlib.decompressobj(_IN_GZIP)
    if not unpack.eof:
        raise InputError(f"{stream.name}: no whole block of documents at byte {start}; {AGAIN}")
    return b"".join(parts), at - len(unpack.unused_data)


def _document(line: bytes, where: str) -> Document:
    try:
        record = parse_record(line.decode(), where)
    except ValueError:
        raise InputError(f"{where} where one should be; {AGAIN}") from None
    if not isinstance(record.get("id"), str) or not isinstance(record.get("contents"), str):
        raise InputError(f"{where}, but an object without the texts id and contents; {AGAIN}")
    return Document(record["id"], record["contents"])


def _hash(docid: str) -> int:
    return int.from_bytes(hashlib.blake2b(docid.encode(), digest_size=8).digest(), "little")
