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
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import IO

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import TEXTS, check_files
from rnnreranker.data.document import Document
from rnnreranker.parts.vectors.npy_files import map_array, write_array

FOLDER = "corpus"
BLOCKS = "documents.jsonl.gz"
AGAIN = "build the index again"
BLOCK = 2**15  # bytes of lines from which a block is full; below 2^16
KEPT = 256  # blocks that were read last
CHUNK = 2**14  # bytes that are read at a time
LEVEL = 4  # of compression: 6 takes twice as long for 2.5 % less
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

    Raises:
        InputError: an index without texts, or with changed files.
    """

    def __init__(self, index: str | os.PathLike[str]) -> None:
        folder = Path(index).expanduser()
        self._stream = _opened(folder)
        self._table = map_array(folder / FOLDER / "offsets.npy", AGAIN)
        self._block = lru_cache(KEPT)(partial(_block_at, self._stream))

    def __getitem__(self, docid: str) -> str:
        hashes, wanted = self._table["hash"], np.uint64(_hash(docid))
        at = int(np.searchsorted(hashes, wanted))
        while at < len(hashes) and hashes[at] == wanted:  # several may collide
            if (document := self._read(int(self._table["offset"][at]))).docid == docid:
                return document.text
            at += 1
        raise KeyError(docid)

    def __iter__(self) -> Iterator[str]:
        return (self._read(offset).docid for offset in np.sort(self._table["offset"]).tolist())

    def __len__(self) -> int:
        return len(self._table)

    def _read(self, offset: int) -> Document:
        return _document(self._block(offset >> 16)[offset & 0xFFFF :].partition(b"\n")[0])


def documents_of(index: Path) -> Iterator[Document]:
    """The documents of an index in the order of their rows; InputError: as `Texts`."""
    with _opened(index) as stream, gzip.open(stream) as lines:
        yield from map(_document, lines)


def file_of_texts(index: Path) -> Path:
    return index / FOLDER / BLOCKS


def texts_of(index: str | os.PathLike[str], docids: Iterable[str]) -> dict[str, str]:
    """The texts of the known ones of some documents, by docid; InputError: as `Texts`."""
    texts = Texts(index)
    return {docid: text for docid in dict.fromkeys(docids) if (text := texts.get(docid)) is not None}


def _opened(index: Path) -> IO[bytes]:
    check_files(index, TEXTS)
    try:
        return open(file_of_texts(index), "rb")
    except FileNotFoundError as error:
        raise InputError(
            f"{error.filename}: no such file, so the texts are not kept in this index; make it with "
            "python -m rnnreranker.index"
        ) from None


def _block_at(stream: IO[bytes], start: int) -> bytes:
    unpack, parts = zlib.decompressobj(_IN_GZIP), []
    stream.seek(start)
    while not unpack.eof and (chunk := stream.read(CHUNK)):
        parts.append(unpack.decompress(chunk))
    return b"".join(parts)


def _document(line: bytes) -> Document:
    record = json.loads(line)
    return Document(record["id"], record["contents"])


def _hash(docid: str) -> int:
    return int.from_bytes(hashlib.blake2b(docid.encode(), digest_size=8).digest(), "little")
