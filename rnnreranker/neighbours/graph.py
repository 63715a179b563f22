"""A graph of neighbours, opened: what its files must be, and what methods ask of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.files import file_digest, fingerprint
from rnnreranker.files.json_files import read_json
from rnnreranker.neighbours.graph_files import EDGES, META, VERSION, WEIGHTS, docids_mark
from rnnreranker.vectors import VectorSource
from rnnreranker.vectors.flex import docnos_of
from rnnreranker.vectors.ids import Ids, read_ids

PART = "neighbours"  # the folder inside an index
REPAIR = "make it again with index --parts neighbours"
CHECKED = 2**22  # values looked at together


class NeighbourGraph:
    """The K nearest other documents of N documents, memory-mapped; row r is that of the vectors it was made from.

    Attributes:
        docids: row number -> docid.
        edges: (N, K) uint32, the nearest first; a document that stands in its own row stands for no neighbour.
        weights: (N, K) float16, finite: inner products.
        vectors: the fingerprint of the vectors that it was made from; empty where a graph of another tool says none.
        fingerprint: of the graph itself.
    """

    def __init__(self, path: Path, ids: Ids, edges: np.ndarray, weights: np.ndarray, vectors: str) -> None:
        self.path, self._ids, self.edges, self.weights, self.vectors = path, ids, edges, weights, vectors
        self.docids: Sequence[str] = ids.names

    @cached_property
    def fingerprint(self) -> str:
        """What tells this graph from others."""
        return fingerprint("graph", *(file_digest(self.path / name) for name in (EDGES, WEIGHTS)))

    @property
    def k(self) -> int:
        """Neighbours of a document."""
        return int(self.edges.shape[1])

    def __len__(self) -> int:
        return len(self.edges)

    def rows(self, docids: Sequence[str]) -> np.ndarray:
        """(n,) int64: the row of each docid, -1 where the docid is unknown."""
        return self._ids.rows(docids)

    def neighbours(self, rows: np.ndarray, k: int | None = None) -> np.ndarray:
        """(n, k) int64: rows of the nearest documents of (n,) rows; k = K where it is None or larger."""
        return self.edges[rows, :k].astype(np.int64)

    def similarities(self, rows: np.ndarray, k: int | None = None) -> np.ndarray:
        """(n, k) float32: the inner products that belong to `neighbours`."""
        return self.weights[rows, :k].astype(np.float32)

    def reciprocal(self, rows: np.ndarray, k: int | None = None) -> np.ndarray:
        """(n, k) bool: which of `neighbours` have the document among their own k nearest."""
        found = self.neighbours(rows, k)
        own = np.asarray(rows)[:, None]
        return (found != own) & (self.edges[found, :k] == own[:, :, None]).any(axis=2)

    def check_k(self, name: str, k: int) -> None:
        """Look whether a setting asks for no more neighbours than there are.

        Raises:
            InputError: it does.
        """
        if k > self.k:
            raise InputError(
                f"{name}={k}: expected at most {self.k}, the neighbours that {self.path} has of a document"
            )

    def check_source(self, source: VectorSource) -> None:
        """Look whether these are the vectors that the graph was made from.

        Raises:
            InputError: other vectors, other documents or another number of them.
        """
        if len(source.docids) != len(self):
            raise InputError(
                f"{self.path}: a graph of {len(self)} documents, but the index has {len(source.docids)}; {REPAIR}"
            )
        if self.vectors and self.vectors != source.fingerprint:
            raise InputError(
                f"{self.path}: made from vectors {self.vectors}, but those of the index are {source.fingerprint}; "
                f"{REPAIR}"
            )
        if not self.vectors and list(source.docids) != list(self.docids):
            raise InputError(f"{self.path}: its documents are not those of the index, in their order; {REPAIR}")


def open_neighbours(path: str | os.PathLike[str], source: VectorSource | None = None) -> NeighbourGraph:
    """The graph in a folder, checked whole; nothing of it is loaded.

    Args:
        path: an index with the part `neighbours`, or the folder of a graph, as this package, pyterrier_dr or
            pyterrier_adaptive write it. Docids are those of the index around it, else of `docnos` (which needs the
            package npids where only `docnos.npids` is there).
        source: the vectors that it must have been made from; None = not compared.

    Raises:
        InputError: no graph there, another version or kind, files cut short, docids of another number or of other
            documents, neighbours beyond the last document, weights that are NaN or infinite; as `check_source`.
        MissingDependencyError: docids that only npids reads.
    """
    path = Path(path).expanduser()
    folder = path / PART if (path / PART).is_dir() else path
    if not (folder / META).is_file():
        raise InputError(f"{path}: no graph of neighbours in it (no {META}); make one with index --parts neighbours")
    count, k, own = _meta(folder / META)
    edges, weights = (_mapped(folder / name, dtype, (count, k)) for name, dtype in ((EDGES, "<u4"), (WEIGHTS, "<f2")))
    for first, block in _blocks(edges):
        if block.max() >= count:
            row = first + int(np.flatnonzero((block >= count).any(axis=1))[0])
            raise InputError(
                f"{folder / EDGES}: document {row} has neighbour {edges[row].max()}; expected 0..{count - 1}; {REPAIR}"
            )
    for first, block in _blocks(weights):
        if not np.isfinite(block).all():
            row = first + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])
            raise InputError(f"{folder / WEIGHTS}: document {row} has NaN or infinite weights; {REPAIR}")
    ids, origin = _docids(folder)
    if len(ids.names) != count:
        raise InputError(f"{folder}: a graph of {count} documents, but {origin} has {len(ids.names)} docids; {REPAIR}")
    if own and own["docids"] != docids_mark(ids.names):
        raise InputError(f"{folder}: a graph of other documents than those of {origin}; {REPAIR}")
    graph = NeighbourGraph(folder, ids, edges, weights, own.get("vectors", ""))
    if source is not None:
        graph.check_source(source)
    return graph


def _meta(path: Path) -> tuple[int, int, dict[str, str]]:
    """Documents, neighbours of each, and what this package wrote besides; empty for a graph of another tool."""
    meta: Any = read_json(path, "description of a graph", REPAIR)
    meta = meta if isinstance(meta, dict) else {}
    kind = (meta.get("type"), meta.get("format"))
    if kind not in [("corpus_graph", "np_topk"), ("corpus_graph", "numpy_kmax")]:
        raise InputError(f"{path}: {kind[0]} in the format {kind[1]}; expected corpus_graph in the format np_topk")
    sizes = meta.get("doc_count"), meta.get("k")
    if not all(type(size) is int and size > 0 for size in sizes):
        raise InputError(f"{path}: doc_count {sizes[0]!r}, k {sizes[1]!r}; expected two integers >= 1")
    own = meta.get("rnnreranker", {})
    if own and (not isinstance(own, dict) or own.get("version") != VERSION or not {"vectors", "docids"} <= set(own)):
        version = own.get("version") if isinstance(own, dict) else own
        raise InputError(f"{path}: version {version!r} of a graph; this version reads {VERSION}; {REPAIR}")
    return *sizes, own


def _mapped(path: Path, dtype: str, shape: tuple[int, int]) -> np.ndarray:
    if not path.is_file():
        raise InputError(f"{path}: no such file; {REPAIR}")
    expected = shape[0] * shape[1] * np.dtype(dtype).itemsize
    if path.stat().st_size != expected:
        raise InputError(
            f"{path}: has {path.stat().st_size} bytes but {shape[1]} neighbours of {shape[0]} documents take "
            f"{expected}; copy it again, or {REPAIR}"
        )
    return np.memmap(path, dtype=dtype, mode="r", shape=shape)


def _docids(folder: Path) -> tuple[Ids, Path]:
    """The docids and the file they are from."""
    around = folder.parent / "docid"
    return (read_ids(around), around) if around.is_file() else docnos_of(folder)


def _blocks(matrix: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    step = max(1, CHECKED // matrix.shape[1])
    for first in range(0, len(matrix), step):
        yield first, np.asarray(matrix[first : first + step])
