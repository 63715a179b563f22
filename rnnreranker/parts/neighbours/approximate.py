"""The nearest other documents by an approximate index of Faiss, and how many of them it finds.

Faiss proposes, products summed in one way in float64 decide: weights and order are those of exact search, documents
may be missing. How wide Faiss looks is doubled until, of a sample of documents whose nearest were looked for exactly,
`GOAL` of the nearest are found.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import fingerprint
from rnnreranker.base.process.blas import one_blas_thread
from rnnreranker.base.process.faiss_threads import one_thread
from rnnreranker.parts.neighbours.nearest import COLUMNS, DenseNeighbours
from rnnreranker.parts.vectors.exact import inner_products
from rnnreranker.parts.vectors.npy_files import put_array

# documents up to which search is exact: N^2 d multiplications are 4 x 10^14 at 384 dimensions, 80 minutes of a core
EXACT = 2**20
SAMPLE = 256  # documents whose nearest are looked for exactly
GOAL = 0.95  # share of them that is to be found
SPARE = 16  # documents that Faiss proposes beyond those wanted
LINKS, CONSTRUCTION = 32, 200  # of HNSW: links of a document, and documents looked at for them
TRAINED = 64  # documents a list that centroids are trained on


class ProposedNeighbours:
    """A `GraphSource` of N vectors of which the nearest are chosen among those that something else proposes.

    Args:
        exact: the vectors; width: how wide the search is.
    """

    of, similarity = DenseNeighbours.of, DenseNeighbours.similarity
    search: str

    def __init__(self, exact: DenseNeighbours, width: int) -> None:
        self.exact, self.width = exact, width
        self.docids: Sequence[str] = exact.docids

    @property
    def fingerprint(self) -> str:
        """Of the vectors."""
        return self.exact.fingerprint

    def proposed(self, rows: np.ndarray, own: np.ndarray, k: int) -> np.ndarray:
        """(R, m) int64: the documents that are proposed of some rows, whose vectors are (R, d) `own`; -1 = none."""
        raise NotImplementedError

    def nearest(self, rows: np.ndarray, k: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """As `GraphSource`, of the documents that are proposed."""
        own = self.exact.vectors.fetch(rows)
        proposed = self.proposed(rows, own, k)
        edges, scores = np.repeat(rows[:, None], k, axis=1), np.zeros((len(rows), k))
        for line, row in enumerate(rows.tolist()):
            others = np.unique(proposed[line])
            others = others[(others >= first) & (others != row)]
            values = inner_products(own[line], self.exact.vectors.fetch(others))
            order = np.lexsort((others, -values))[:k]
            edges[line, : len(order)], scores[line, : len(order)] = others[order], values[order]
        return edges, scores

    def bounds(self, rows: np.ndarray, first: int) -> np.ndarray:
        return self.exact.bounds(rows, first)

    def similarities(self, rows: np.ndarray, edges: np.ndarray) -> np.ndarray:
        return self.exact.similarities(rows, edges)


class ApproximateNeighbours(ProposedNeighbours):
    """A `GraphSource` of N vectors whose nearest are proposed by an index of Faiss.

    Args:
        exact: the vectors; search: "hnsw" or "ivf"; file: the index; width: efSearch or nprobe.
    """

    def __init__(self, exact: DenseNeighbours, search: str, file: Path, width: int) -> None:
        super().__init__(exact, width)
        self.search, self.file = search, file
        self._faiss = require("faiss", f"neighbours:search={search}", "faiss-cpu")
        self._index = self._faiss.read_index(str(file), self._faiss.IO_FLAG_MMAP | self._faiss.IO_FLAG_READ_ONLY)
        _widen(self._index, search, width)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens vectors and index itself."""
        return _opened, (self.exact, self.search, self.file, self.width)

    def proposed(self, rows: np.ndarray, own: np.ndarray, k: int) -> np.ndarray:
        with one_thread(self._faiss):
            proposed: np.ndarray = self._index.search(own, min(k + 1 + SPARE, len(self.docids)))[1]
        return proposed


def sample_of(exact: DenseNeighbours, k: int, work: Path) -> tuple[np.ndarray, np.ndarray]:
    """Rows (S,) of the sample, ascending, and their k nearest (S, k), kept in a file of the folder `work`."""
    count = len(exact.docids)
    rows = np.sort(np.random.default_rng(0).choice(count, min(SAMPLE, count), replace=False))
    file = work / f"sample-{fingerprint(exact.fingerprint, k, SAMPLE)}.npy"
    if not file.is_file():
        with one_blas_thread():
            edges = exact.nearest(rows, k)[0]
        put_array(file, edges)
    return rows, np.load(file, allow_pickle=False)


def recall_of(proposed: np.ndarray, nearest: np.ndarray) -> float:
    """The share of the nearest that were proposed, in the mean of the lines of two (S, k).

    >>> recall_of(np.array([[1, 2], [3, 4]]), np.array([[2, 5], [4, 3]]))
    0.75
    """
    shared = [np.intersect1d(one, other).size for one, other in zip(proposed, nearest, strict=True)]
    return float(np.mean(shared) / nearest.shape[1])


def approximate(exact: DenseNeighbours, search: str, k: int, work: Path) -> ApproximateNeighbours:
    """The index of Faiss, made in the folder `work` or found there, as wide as the goal asks.

    The index does not depend on the number of threads: it is made by one.
    """
    work.mkdir(parents=True, exist_ok=True)
    rows, nearest = sample_of(exact, k, work)
    file = work / f"{search}-{fingerprint(exact.fingerprint, LINKS, CONSTRUCTION, TRAINED)}.faiss"
    faiss = require("faiss", f"neighbours:search={search}", "faiss-cpu")
    if not file.is_file():
        with one_thread(faiss), one_blas_thread():
            index = _build(faiss, exact, search)
        begun = file.with_suffix(".begun")
        faiss.write_index(index, str(begun))
        with open(begun, "rb") as written:
            os.fsync(written.fileno())
        os.replace(begun, file)
    count, width = len(exact.docids), 8
    while True:
        source = ApproximateNeighbours(exact, search, file, width)
        if width >= count or recall_of(source.nearest(rows, k)[0], nearest) >= GOAL:
            return source
        width *= 2


def _build(faiss: Any, exact: DenseNeighbours, search: str) -> Any:
    count, dimension = len(exact.docids), exact.vectors.dimension
    if search == "hnsw":
        index = faiss.IndexHNSWFlat(dimension, LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = CONSTRUCTION
    elif search == "ivf":
        lists = max(1, min(int(4 * np.sqrt(count)), count // TRAINED))
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimension), dimension, lists, faiss.METRIC_INNER_PRODUCT)
        chosen = np.random.default_rng(0).choice(count, min(count, TRAINED * lists), replace=False)
        index.train(exact.vectors.fetch(np.sort(chosen)))
    else:
        raise InputError(f"graph search {search}: expected hnsw or ivf")
    for first in progress(range(0, count, COLUMNS), unit="blocks", what=search):
        index.add(exact.vectors.fetch(np.arange(first, min(first + COLUMNS, count))))
    return index


def _widen(index: Any, search: str, width: int) -> None:
    if search == "hnsw":
        index.hnsw.efSearch = width
    else:
        index.nprobe = min(width, index.nlist)


@lru_cache(maxsize=1)
def _opened(exact: DenseNeighbours, search: str, file: Path, width: int) -> ApproximateNeighbours:
    """The index in a file, once in a process."""
    return ApproximateNeighbours(exact, search, file, width)
