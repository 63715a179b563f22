"""`docnos.npids`, the file of docids that readers of a corpus graph look names up in, in both directions.

The layout of the package npids: a head, the docids padded to one length, and buckets of rows by a hash of the docid;
each begins with its kind, where the next begins, how many docids it has, and a mapping in JSON.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

MAGIC = int.from_bytes(b"NPID", "little")
DOCIDS, ROWS = 0, 1  # kinds of sections


def write_docnos(stream: IO[bytes], docids: Sequence[str]) -> None:
    """Write a whole file; at least one docid, none of which ends in a NUL."""
    names = np.array([docid.encode() for docid in docids])
    bits = (len(names) - 1).bit_length()
    buckets = _fnv(names) & np.uint32((1 << bits) - 1)
    starts = np.concatenate([[0], np.cumsum(np.bincount(buckets, minlength=1 << bits))])
    rows = np.argsort(buckets, kind="stable")
    fixed = {"format": "fixedbytes", "length": names.dtype.itemsize, "prefix": ""}
    hashed = {"format": "hash", "hash_bits": bits, "hash_fn": "fnv1_32"}
    _write(stream, MAGIC, 0, {"version": 1}, b"")
    _write(stream, DOCIDS, len(names), fixed, names.tobytes())
    _write(stream, ROWS, len(names), hashed, starts.astype("<u4").tobytes() + rows.astype("<u4").tobytes(), last=True)


def _write(
    stream: IO[bytes], kind: int, count: int, config: dict[str, Any], content: bytes, last: bool = False
) -> None:
    """Append a section."""
    about = json.dumps(config).encode()
    size = struct.calcsize("<IqqI") + len(about) + len(content)
    stream.write(struct.pack("<IqqI", kind, -1 if last else stream.tell() + size, count, len(about)))
    stream.write(about + content)


def _fnv(names: np.ndarray) -> np.ndarray:
    """(n,) uint32: the FNV-1a hash, 32 bits, of (n,) byte strings."""
    hashes = np.full(len(names), 0x811C9DC5, dtype=np.uint32)
    for column in names.view(np.uint8).reshape(len(names), -1).T:
        hashes = np.where(column != 0, (hashes ^ column) * np.uint32(0x01000193), hashes)
    return hashes
