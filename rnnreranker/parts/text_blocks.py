"""Lines of JSON documents in blocks that are compressed one by one: a gzip file of which any line is read at once.

An offset says where a block begins in the file, times 2^16, and behind which byte of it the line stands. Whatever reads
gzip reads the file from end to end, as Anserini does.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import IO, NamedTuple

from rnnreranker.base.errors import InputError
from rnnreranker.base.files.json_files import parse_record

BLOCK = 2**15  # bytes of lines from which a block is full; below 2^16
KEPT = 256  # blocks that were read last
CHUNK = 2**14  # bytes that are read at a time
LEVEL = 6  # of compression: 9 takes six times as long for 4 % less
AGAIN = "build the index again"
_IN_GZIP = 31  # of zlib: a member of a gzip file, whose checksum is looked at


class DocumentLine(NamedTuple):
    """A document as it stands in a line."""

    docid: str
    text: str


class BlockWriter:
    """Writes lines into a stream, in blocks; what is left is written by `close`."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._block, self._at = stream, bytearray(), 0

    def add(self, line: bytes) -> int:
        """Write a line, and say its offset."""
        offset = (self._at << 16) + len(self._block)
        self._block += line
        if len(self._block) >= BLOCK:
            self._write()
        return offset

    def close(self) -> None:
        """Write the last block, and close the stream."""
        if self._block:
            self._write()
        self._stream.close()

    def _write(self) -> None:
        self._at += self._stream.write(gzip.compress(bytes(self._block), LEVEL, mtime=0))
        self._block.clear()


class BlockLines:
    """Lines in compressed blocks.

    Args:
        stream: of the file.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._block: Callable[[int], bytes] = lru_cache(KEPT)(partial(_block_at, stream))

    def read(self, offset: int) -> DocumentLine:
        """The document at an offset; InputError: there is none."""
        start, within = offset >> 16, offset & 0xFFFF
        block = self._block(start) if start >= 0 else b""
        where = f"{self._stream.name}: no document at byte {within} of the block at byte {start}"
        if within >= len(block) or (within and block[within - 1 : within] != b"\n"):
            raise InputError(f"{where} where offsets.npy has one; {AGAIN}")
        end = block.find(b"\n", within)
        return _record(block[within : end if end >= 0 else len(block)], where)

    def all(self) -> Iterator[DocumentLine]:
        """The documents in their order; InputError: a block that is damaged, a line that is no document."""
        start = 0
        while _more(self._stream, start):
            block, after = _member(self._stream, start)
            for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), 1):
                yield _record(line, f"{self._stream.name}: no document on line {number} of the block at byte {start}")
            start = after


def _more(stream: IO[bytes], start: int) -> bool:
    stream.seek(start)
    return bool(stream.read(1))


def _block_at(stream: IO[bytes], start: int) -> bytes:
    return _member(stream, start)[0]


def _member(stream: IO[bytes], start: int) -> tuple[bytes, int]:
    """A block, and where the next one begins."""
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


def _record(line: bytes, where: str) -> DocumentLine:
    try:
        record = parse_record(line.decode(), where)
    except ValueError:
        raise InputError(f"{where} where one should be; {AGAIN}") from None
    if not isinstance(record.get("id"), str) or not isinstance(record.get("contents"), str):
        raise InputError(f"{where}, but an object without the texts id and contents; {AGAIN}")
    return DocumentLine(record["id"], record["contents"])
