"""`pt_meta.json` of a graph, and the names of its files: what other tools read there, and what it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint, write_json
from rnnreranker.base.files.json_files import read_json

EDGES, WEIGHTS, DOCNOS, META = "edges.u32.np", "weights.f16.np", "docnos.npids", "pt_meta.json"
VERSION = 2  # of what stands under `rnnreranker`
REPAIR = "make it again with index --parts neighbours"


@dataclass(frozen=True)
class Origin:
    """What a graph was made from; every text is empty where a graph of another tool says nothing.

    Attributes:
        of: the part of an index, "dense", "impact" or "bm25".
        similarity: what the weights are, "inner product" or "cosine".
        source: the fingerprint of the vectors.
        docids: `docids_mark` of the documents.
        search: how neighbours were looked for, "exact", "hnsw" or "ivf".
        recall: the share of the nearest that were found, in the mean of `sampled` documents whose nearest were looked
            for exactly; 1 of none where all were.
    """

    of: str = ""
    similarity: str = ""
    source: str = ""
    docids: str = ""
    search: str = ""
    recall: float = 1.0
    sampled: int = 0


def docids_mark(docids: Sequence[str]) -> str:
    """What tells the documents of one graph, in their order, from those of another."""
    return fingerprint("\n".join(docids).encode())


def write_description(folder: Path, count: int, k: int, origin: Origin) -> None:
    """Write `pt_meta.json` of a graph of so many documents with k neighbours each."""
    theirs = {"type": "corpus_graph", "format": "np_topk", "package_hint": "pyterrier-adaptive"}
    own = {"version": VERSION, **asdict(origin)}
    write_json(folder / META, {**theirs, "doc_count": count, "k": k, "rnnreranker": own})


def read_description(folder: Path) -> tuple[int, int, Origin]:
    """Documents, neighbours of each, and the origin.

    Raises:
        InputError: no graph, one of another kind or version, or numbers that are none.
    """
    path = folder / META
    meta: Any = read_json(path, "description of a graph", REPAIR)
    meta = meta if isinstance(meta, dict) else {}
    kind = (meta.get("type"), meta.get("format"))
    if kind not in [("corpus_graph", "np_topk"), ("corpus_graph", "numpy_kmax")]:
        raise InputError(f"{path}: {kind[0]} in the format {kind[1]}; expected corpus_graph in the format np_topk")
    sizes = meta.get("doc_count"), meta.get("k")
    if not all(type(size) is int and size > 0 for size in sizes):
        raise InputError(f"{path}: doc_count {sizes[0]!r}, k {sizes[1]!r}; expected two integers >= 1")
    own = meta.get("rnnreranker", {})
    own = own if isinstance(own, dict) else {"version": own}
    said: dict[str, Any] = {name: own.get(name) for name in asdict(Origin())}
    if not own:
        return *sizes, Origin()
    kinds = {name: type(value) for name, value in asdict(Origin()).items()}
    if own.get("version") != VERSION or not all(type(value) is kinds[name] for name, value in said.items()):
        raise InputError(f"{path}: version {own.get('version')!r} of a graph; this version reads {VERSION}; {REPAIR}")
    return *sizes, Origin(**said)
