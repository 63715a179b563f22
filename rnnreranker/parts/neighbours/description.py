"""`pt_meta.json` of a graph, the names of its files, and the files themselves, memory-mapped."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint, write_json
from rnnreranker.base.strict import read_json
from rnnreranker.parts.vectors.ids import IdTable, byte_hashes

PART = "neighbours"  # the folder inside an index
EDGES, WEIGHTS, DOCNOS, META = "edges.u32.np", "weights.f16.np", "docnos.npids", "pt_meta.json"
VERSION = 2  # of what stands under `rnnreranker`
REPAIR = "make it again with index --parts neighbours"


@dataclass(frozen=True)
class Origin:
    """What a graph was made of; fields are "" for graphs of other tools.

    Attributes:
        of: "dense", "impact" or "bm25"; similarity: of the weights, "inner product" or "cosine".
        source: the fingerprint of the vectors; docids: `docids_mark` of the documents; search: "exact" or "ivf".
        recall: the mean share of the exact nearest of `sampled` documents in the graph; 1 for exact search.
    """

    of: str = ""
    similarity: str = ""
    source: str = ""
    docids: str = ""
    search: str = ""
    recall: float = 1.0
    sampled: int = 0


def docids_mark(docids: Sequence[str]) -> str:
    return docids.mark if isinstance(docids, IdTable) else fingerprint("\n".join(docids).encode())


def write_description(folder: Path, count: int, k: int, origin: Origin) -> None:
    theirs = {"type": "corpus_graph", "format": "np_topk", "package_hint": "pyterrier-adaptive"}
    own = {"version": VERSION, **asdict(origin)}
    write_json(folder / META, {**theirs, "doc_count": count, "k": k, "rnnreranker": own})


def read_description(folder: Path) -> tuple[int, int, Origin]:
    """Number of documents, of neighbours of each, and the origin; InputError: no graph, another kind or version."""
    path = folder / META
    meta: Any = read_json(path, "description of a graph", REPAIR)
    meta = meta if isinstance(meta, dict) else {}
    kind = (meta.get("type"), meta.get("format"))
    if kind not in [("corpus_graph", "np_topk"), ("corpus_graph", "numpy_kmax")]:
        raise InputError(f"{path}: {kind[0]} in the format {kind[1]}; expected corpus_graph in the format np_topk")
    sizes = meta.get("doc_count"), meta.get("k")
    if not all(type(size) is int and size > 0 for size in sizes):
        raise InputError(f"{path}: doc_count {sizes[0]!r}, k {sizes[1]!r}; expected two integers >= 1")
    if not (own := meta.get("rnnreranker")):
        return *sizes, Origin()
    own = own if isinstance(own, dict) else {"version": own}
    if own.get("version") != VERSION:
        raise InputError(f"{path}: version {own.get('version')!r} of a graph; this version reads {VERSION}; {REPAIR}")
    return *sizes, Origin(**{name: own[name] for name in asdict(Origin()) if name in own})


def map_graph(folder: Path, count: int, k: int) -> list[np.ndarray]:
    """Edges (N, K) uint32 and weights (N, K) float16, memory-mapped; InputError: missing files, other sizes."""
    mapped: list[np.ndarray] = []
    for path, dtype in ((folder / EDGES, np.dtype("<u4")), (folder / WEIGHTS, np.dtype("<f2"))):
        if not path.is_file():
            raise InputError(f"{path}: no such file; {REPAIR}")
        size, expected = path.stat().st_size, count * k * dtype.itemsize
        if size != expected:
            raise InputError(
                f"{path}: has {size} bytes but {k} neighbours of {count} documents take {expected}; copy it again, or "
                f"{REPAIR}"
            )
        mapped.append(np.memmap(path, dtype, "r", shape=(count, k)))
    return mapped


def write_docnos(stream: IO[bytes], docids: Sequence[str]) -> None:
    """Write `docnos.npids`, in which readers of a corpus graph look docids up, in both directions.

    The layout of the package npids: a head, the docids padded to one length, and buckets of rows by a hash of the
    docid; each section has its kind, the start of the next, the number of docids, and JSON. No docid ends in a NUL.
    """
    names = np.array([docid.encode() for docid in docids])
    bits = (len(names) - 1).bit_length()
    buckets = byte_hashes(names, np.uint32(0x811C9DC5), np.uint32(0x01000193)) & np.uint32((1 << bits) - 1)
    starts = np.concatenate([[0], np.cumsum(np.bincount(buckets, minlength=1 << bits))])
    rows = np.argsort(buckets, kind="stable")
    fixed = {"format": "fixedbytes", "length": names.dtype.itemsize, "prefix": ""}
    hashed = {"format": "hash", "hash_bits": bits, "hash_fn": "fnv1_32"}
    sections = [
        (int.from_bytes(b"NPID", "little"), 0, {"version": 1}, b""),
        (0, len(names), fixed, names.tobytes()),
        (1, len(names), hashed, starts.astype("<u4").tobytes() + rows.astype("<u4").tobytes()),
    ]
    for kind, count, config, content in sections:
        about = json.dumps(config).encode()
        following = -1 if kind == 1 else stream.tell() + struct.calcsize("<IqqI") + len(about) + len(content)
        stream.write(struct.pack("<IqqI", kind, following, count, len(about)) + about + content)
