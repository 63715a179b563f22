"""The texts of an index: a JSON document a line, as in Pyserini's JsonCollection, and a table to find a few quickly.

`corpus/documents.jsonl.gz` holds {"id", "contents"} in the order of the rows, in blocks that are compressed one by
one; `corpus/offsets.npy` holds, sorted by a hash of the docid, where each line begins, so that looking up a handful of
docids reads little more than their blocks.
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

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files.checksums import TEXTS, check_files
from rnnreranker.data.document import Document
from rnnreranker.parts.text_blocks import BlockLines, BlockWriter
from rnnreranker.parts.vectors.npy_files import map_array, write_array

FOLDER = "corpus"
BLOCKS = "documents.jsonl.gz"
_as_json = json.JSONEncoder(ensure_ascii=False).encode
ENTRY = np.dtype([("hash", "<u8"), ("offset", "<i8")])


class CorpusWriter:
    """Writes `corpus/` inside an index folder while documents stream by; used as a context manager."""

    def __init__(self, index: Path) -> None:
        self._folder = index / FOLDER
        self._hashes = array("Q")
        self._offsets = array("q")

    def __enter__(self) -> CorpusWriter:
        self._folder.mkdir(parents=True)
        self._lines = BlockWriter(open(self._folder / BLOCKS, "wb"))  # closed with it
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self._lines.close()
        if kind is None:
            table = np.empty(len(self._hashes), dtype=ENTRY)
            table["hash"], table["offset"] = self._hashes, self._offsets
            with open(self._folder / "offsets.npy", "wb") as stream:
                write_array(stream, np.sort(table, order=("hash", "offset")))

    def add(self, document: Document) -> None:
        """Append a document."""
        line = f'{{"id": {_as_json(document.docid)}, "contents": {_as_json(document.text)}}}\n'
        self._hashes.append(_hash(document.docid))
        self._offsets.append(self._lines.add(line.encode()))


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
            stream = open(file_of_texts(folder.parent), "rb")  # noqa: SIM115
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
        self._lines = BlockLines(stream)
        weakref.finalize(self, stream.close)

    def __getitem__(self, docid: str) -> str:
        wanted = np.uint64(_hash(docid))
        line = int(np.searchsorted(self._table["hash"], wanted))
        while line < len(self._table) and self._table["hash"][line] == wanted:  # several only when hashes collide
            record = self._lines.read(int(self._table["offset"][line]))
            if record.docid == docid:
                return record.text
            line += 1
        raise KeyError(docid)

    def __iter__(self) -> Iterator[str]:
        return (self._lines.read(int(offset)).docid for offset in np.sort(self._table["offset"]))

    def __len__(self) -> int:
        return len(self._table)


def documents_of(index: Path) -> Iterator[Document]:
    """The documents of an index in the order of their rows.

    Raises:
        InputError: an index without texts, or with a line that is no document.
    """
    check_files(index, TEXTS)
    try:
        stream = open(file_of_texts(index), "rb")  # noqa: SIM115
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}); build the index again") from None
    with stream:
        for record in BlockLines(stream).all():
            yield Document(record.docid, record.text)


def file_of_texts(index: Path) -> Path:
    """The file of the texts of an index."""
    return index / FOLDER / BLOCKS


def texts_of(index: str | os.PathLike[str], docids: Iterable[str]) -> dict[str, str]:
    """The texts of some documents of an index, by docid; docids that the index does not have are left out.

    Args and Raises: as `Texts`; docids: the documents wanted.
    """
    texts, wanted = Texts(index), dict.fromkeys(docids)
    text_of = {docid: texts.get(docid) for docid in wanted}
    return {docid: text for docid, text in text_of.items() if text is not None}


def _hash(docid: str) -> int:
    return int.from_bytes(hashlib.blake2b(docid.encode(), digest_size=8).digest(), "little")
