"""`pt_meta.json` of a graph, and the names of its files."""

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
from rnnreranker.parts.vectors.ids import IdTable

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
    return fingerprint(docids.content() if isinstance(docids, IdTable) else "\n".join(docids).encode())


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


def write_docnos(stream: IO[bytes], docids: Sequence[str]) -> None:
    """Write `docnos.npids`, in which readers of a corpus graph look docids up, in both directions.

    The layout of the package npids: a head, the docids padded to one length, and buckets of rows by a hash of the
    docid; each section has its kind, the start of the next, the number of docids, and JSON. No docid ends in a NUL.
    """
    names = np.array([docid.encode() for docid in docids])
    bits = (len(names) - 1).bit_length()
    buckets = _fnv(names) & np.uint32((1 << bits) - 1)
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
        size = struct.calcsize("<IqqI") + len(about) + len(content)
        following = -1 if kind == 1 else stream.tell() + size
        stream.write(struct.pack("<IqqI", kind, following, count, len(about)) + about + content)


def _fnv(names: np.ndarray) -> np.ndarray:
    hashes = np.full(len(names), 0x811C9DC5, dtype=np.uint32)
    for column in names.view(np.uint8).reshape(len(names), -1).T:
        hashes = np.where(column != 0, (hashes ^ column) * np.uint32(0x01000193), hashes)
    return hashes
