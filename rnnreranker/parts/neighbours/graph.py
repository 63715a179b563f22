"""An opened graph of neighbours."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

import numpy as np

from rnnreranker.base.checksums import check_files
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.base.given import path_of
from rnnreranker.parts.neighbours.description import (
    EDGES,
    META,
    PART,
    REPAIR,
    WEIGHTS,
    Origin,
    docids_mark,
    map_graph,
    read_description,
)
from rnnreranker.parts.vectors.ids import HasDocids, Ids, read_ids
from rnnreranker.parts.vectors.matrix_files import docnos_of

CHECKED = 2**22  # values looked at together
EXPONENT = 0x7C00  # the bits of a float16 that are all set where it is NaN or infinite


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
            InputError: neighbours beyond the last document, weights that are NaN or infinite.
        """
        edges, weights = (np.asarray(one).take(rows, axis=0)[:, :k] for one in (self.edges, self.weights))
        if (beyond := edges >= len(self)).any():
            first = np.argwhere(beyond)[0]
            raise InputError(
                f"{self.path / EDGES}: document {np.asarray(rows)[first[0]]} has neighbour {edges[tuple(first)]}; "
                f"expected 0..{len(self) - 1}; {REPAIR}"
            )
        if (infinite := (weights.view(np.uint16) & EXPONENT) == EXPONENT).any():
            row = np.asarray(rows)[np.argwhere(infinite)[0, 0]]
            raise InputError(f"{self.path / WEIGHTS}: document {row} has NaN or infinite weights; {REPAIR}")
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

    def check_whole(self) -> None:
        """Check every row as `fetch` does."""
        step = max(1, CHECKED // self.k)
        for first in range(0, len(self), step):
            self.fetch(np.arange(first, min(first + step, len(self))))


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
    count, k, origin = read_description(folder)
    around = (folder.parent / name for name in ("ids", "docid"))
    docids = next((file for file in around if file.is_file()), None)
    ids, docids = (read_ids(docids), docids) if docids else docnos_of(folder)
    if len(ids.names) != count:
        raise InputError(f"{folder}: a graph of {count} documents, but {docids} has {len(ids.names)} docids; {REPAIR}")
    if origin.docids and origin.docids != docids_mark(ids.names):
        raise InputError(f"{folder}: a graph of other documents than those of {docids}; {REPAIR}")
    if source and origin.source and origin.source != source:
        raise InputError(
            f"{folder}: made from {origin.of} vectors {origin.source}, but those of the index are {source}; {REPAIR}"
        )
    edges, weights = map_graph(folder, count, k)
    return NeighbourGraph(folder, ids, edges, weights, origin)
