"""The folder of a graph of neighbours: `pt_meta.json`, edges, weights and docids, opened memory-mapped.

`edges.u32.np` and `weights.f16.np` are N x K raw values, row after row; with `docnos.npids` and `pt_meta.json` they are
a corpus graph of pyterrier_dr and pyterrier_adaptive.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from rnnreranker.base.errors import InputError, path_of
from rnnreranker.base.files import check_files, file_digest, fingerprint, read_json, write_json
from rnnreranker.parts.vectors.ids import HasDocids, Ids, byte_hashes, docnos_of

PART = "neighbours"  # the folder inside an index
EDGES, WEIGHTS, DOCNOS, META = "edges.u32.np", "weights.f16.np", "docnos.npids", "pt_meta.json"
VERSION = 2  # of what stands under `rnnreranker`
REPAIR = "make it again with index --parts neighbours"


@dataclass(frozen=True)
class Origin:
    """What a graph was made of; fields are "" for graphs of other tools.

    Attributes:
        of: "dense", "impact" or "terms"; similarity: of the weights, "inner product" or "cosine".
        source: the fingerprint of the vectors; docids: `Ids.mark` of the documents; search: "exact" or "ivf".
        recall: the mean share of the exact nearest of `sampled` documents in the graph; 1 for exact search.
    """

    of: str = ""
    similarity: str = ""
    source: str = ""
    docids: str = ""
    search: str = ""
    recall: float = 1.0
    sampled: int = 0


class NeighbourGraph(HasDocids):
    """The K nearest other documents of N documents, memory-mapped; rows are checked when they are fetched.

    Attributes:
        docids: row → docid; k: K.
        edges: (N, K) uint32, the nearest first; a document in its own row means no neighbour.
        weights: (N, K) float16: similarities, 0 without a neighbour.
        origin: what it was made of; fingerprint: of the graph itself.
    """

    def __init__(self, path: Path, ids: Ids, edges: np.ndarray, weights: np.ndarray, origin: Origin) -> None:
        super().__init__(ids)
        self.path, self.edges, self.weights, self.origin = path, edges, weights, origin
        self.k, self.opened = int(edges.shape[1]), (open_neighbours, (path.absolute(),))

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("graph", *(file_digest(self.path / name) for name in (EDGES, WEIGHTS)))

    def __len__(self) -> int:
        return len(self.edges)

    def fetch(self, rows: np.ndarray, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(n, k) uint32 edges and (n, k) float16 weights of (n,) rows, copied; k = K if it is None or larger.

        Raises:
            InputError: row -1, of an unknown docid; neighbours beyond the last document, weights that are NaN or
                infinite.
        """
        if (np.asarray(rows) < 0).any():
            raise InputError(f"{self.path}: row -1; leave it out, it stands for an unknown docid")
        edges, weights = (np.asarray(one).take(rows, axis=0)[:, :k] for one in (self.edges, self.weights))
        if (wrong := (edges >= len(self)) | ~np.isfinite(weights)).any():
            row = np.asarray(rows)[wrong.any(axis=1)][0]
            raise InputError(
                f"{self.path}: document {row} has a neighbour beyond {len(self) - 1}, or a weight that is NaN or "
                f"infinite; {REPAIR}"
            )
        return edges, weights

    def neighbours(self, rows: np.ndarray, k: int | None = None) -> np.ndarray:
        """(n, k) int64: rows of the nearest documents; k and errors as `fetch`."""
        return self.fetch(rows, k)[0].astype(np.int64)

    def similarities(self, rows: np.ndarray, k: int | None = None) -> np.ndarray:
        """(n, k) float32: the weights of `neighbours`."""
        return self.fetch(rows, k)[1].astype(np.float32)

    def reciprocal(self, rows: np.ndarray, k: int | None = None) -> np.ndarray:
        """(n, k) bool: which of `neighbours` have the document among their own k nearest."""
        near = self.neighbours(rows, k)
        own = np.asarray(rows)[:, None]
        return (near != own) & (self.edges[near, :k] == own[:, :, None]).any(axis=2)

    def check_k(self, name: str, k: int) -> None:
        """Raise InputError if the setting `name` asks for more neighbours than the graph has."""
        if k > self.k:
            raise InputError(
                f"{name}={k}: expected at most {self.k}, the neighbours that {self.path} has of a document"
            )


def open_neighbours(path: str | os.PathLike[str], source: str = "") -> NeighbourGraph:
    """The graph in a folder; only the sizes of edges and weights are read.

    Args:
        path: an index with the part `neighbours`, or the folder of a graph of this package, pyterrier_dr or
            pyterrier_adaptive.
        source: the fingerprint of the vectors that it was made of; "" = not compared.

    Raises:
        InputError: no graph, another version or kind, files cut, other docids, other vectors.
        MissingDependencyError: `docnos.npids` without the package npids.
    """
    path = path_of(path, "the folder of an index or a graph")
    folder = path / PART if (path / PART).is_dir() else path
    if not (folder / META).is_file():
        raise InputError(f"{path}: no graph of neighbours in it (no {META}); make one with index --parts neighbours")
    if folder.name == PART:
        check_files(folder.parent, PART)
    count, k, origin = _described(folder / META)
    around = (folder.parent / name for name in ("ids", "docid") if origin.docids)
    ids, docids = docnos_of(folder, *around)
    if len(ids.names) != count:
        raise InputError(f"{folder}: a graph of {count} documents, but {docids} has {len(ids.names)} docids; {REPAIR}")
    if origin.docids and origin.docids != ids.mark:
        raise InputError(f"{folder}: a graph of other documents than those of {docids}; {REPAIR}")
    if source and origin.source and origin.source != source:
        raise InputError(
            f"{folder}: made from {origin.of} vectors {origin.source}, but those of the index are {source}; {REPAIR}"
        )
    edges, weights = _map(folder / EDGES, "<u4", count, k), _map(folder / WEIGHTS, "<f2", count, k)
    return NeighbourGraph(folder, ids, edges, weights, origin)


def _described(path: Path) -> tuple[int, int, Origin]:
    """Number of documents, of neighbours of each, and the origin; InputError: another kind or version."""
    meta = read_json(path, "description of a graph", REPAIR)
    try:
        count, k, own = meta["doc_count"], meta["k"], meta.get("rnnreranker") or {"version": VERSION}
        known = meta["type"] == "corpus_graph" and meta["format"] in ("np_topk", "numpy_kmax")
        if known and own["version"] == VERSION and type(count) is type(k) is int and min(count, k) > 0:
            return count, k, Origin(**{one.name: own[one.name] for one in fields(Origin) if one.name in own})
    except (KeyError, TypeError, AttributeError):
        pass
    raise InputError(
        f"{path}: expected a corpus_graph in the format np_topk, doc_count and k >= 1, and version {VERSION} of "
        f"rnnreranker; {REPAIR}"
    )


def _map(path: Path, kind: str, count: int, k: int) -> np.ndarray:
    """(N, K) raw values of a file, memory-mapped; InputError: no such file, another size."""
    size, expected = path.stat().st_size if path.is_file() else 0, count * k * np.dtype(kind).itemsize
    if size != expected:
        raise InputError(
            f"{path}: has {size} bytes but {k} neighbours of {count} documents take {expected}; copy it again, or "
            f"{REPAIR}"
        )
    return np.memmap(path, kind, "r", shape=(count, k))


def write_files(folder: Path, blocks: Iterable[np.ndarray], k: int, source: Any) -> None:
    """Write the files of a graph.

    blocks: (n, K) edges and weights of documents in their order; source: as in `nearest.GraphSource`.
    """
    with open(folder / EDGES, "wb") as edges, open(folder / WEIGHTS, "wb") as weights:
        for block in blocks:
            edges.write(block["edge"].tobytes())
            weights.write(block["weight"].tobytes())
    with open(folder / DOCNOS, "wb") as stream:
        write_docnos(stream, source.docids)
    theirs = {"type": "corpus_graph", "format": "np_topk", "package_hint": "pyterrier-adaptive"}
    made_of = source.of, source.similarity, source.fingerprint, Ids(source.docids, "").mark
    own = {"version": VERSION, **asdict(Origin(*made_of, source.search, source.recall, source.sampled))}
    write_json(folder / META, {**theirs, "doc_count": len(source.docids), "k": k, "rnnreranker": own})


def write_docnos(stream: IO[bytes], docids: Sequence[str]) -> None:
    """Write `docnos.npids`, in which readers of a corpus graph look docids up, in both directions.

    The layout of the package npids: a head, the docids padded to one length, and buckets of rows by a hash of the
    docid; each section has its kind, the start of the next, the number of docids, and JSON. No docid ends in a NUL.
    """
    names = np.array([docid.encode() for docid in docids])
    bits = (len(names) - 1).bit_length()
    buckets = byte_hashes(names, np.uint32(0x811C9DC5), np.uint32(0x01000193)) & np.uint32((1 << bits) - 1)
    starts = np.cumsum(np.bincount(buckets + 1, minlength=(1 << bits) + 1))
    hashed = starts.astype("<u4").tobytes() + np.argsort(buckets, kind="stable").astype("<u4").tobytes()
    for kind, count, about, content in (
        (int.from_bytes(b"NPID", "little"), 0, {"version": 1}, b""),
        (0, len(names), {"format": "fixedbytes", "length": names.dtype.itemsize, "prefix": ""}, names.tobytes()),
        (1, len(names), {"format": "hash", "hash_bits": bits, "hash_fn": "fnv1_32"}, hashed),
    ):
        described = json.dumps(about).encode()
        following = -1 if kind == 1 else stream.tell() + struct.calcsize("<IqqI") + len(described) + len(content)
        stream.write(struct.pack("<IqqI", kind, following, count, len(described)) + described + content)
