"""The documents of a graph, how they are compared, and the nearest others of each, exact or approximate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import require
from rnnreranker.base.files import fingerprint
from rnnreranker.base.jobs import one_blas_thread, one_faiss_thread
from rnnreranker.parts.neighbours.on_device import OnDevice
from rnnreranker.parts.postings.source import Postings, best_products
from rnnreranker.parts.vectors import VectorSource
from rnnreranker.parts.vectors.exact import Propose, by_blocks, exact_search, inner_products
from rnnreranker.parts.vectors.faiss_folder import write_lists
from rnnreranker.parts.vectors.ids import Reopened
from rnnreranker.parts.vectors.npy_files import put_array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

COLUMNS = 8192  # documents that a block of rows is compared with at a time
FEW = 2048  # documents that are compared sooner than the compiled function of `pairs` is there
LISTS = 2**29  # bytes of the lists of all documents, at most
SPARE, SPARE_OF_LISTS = 9, 16  # documents proposed beyond a list and the document itself
# documents up to which search is exact: N^2 d multiplications are 4 x 10^14 at 384 dimensions, 80 minutes of a core
EXACT = 2**20
SAMPLE = 256  # documents whose nearest are looked for exactly
GOAL = 0.95  # share of them that Faiss has to propose
TRAINED = 64  # documents a list that centroids are trained on
Nearest = tuple[np.ndarray, np.ndarray]  # edges (R, k) int64 and similarities (R, k) float64


class GraphSource(Reopened, ABC):
    """Documents and their similarities. In a row of neighbours, the document itself at 0 means no neighbour.

    Attributes:
        of: the part of an index; similarity: "inner product" or "cosine"; docids: row → docid.
        search: exact or not; width: of an approximate search; fingerprint: of documents and comparison.
        devices: number of devices that it computes on besides the processor.
        recall: the mean share of the exact nearest that it finds, of `sampled` documents.
    """

    of, similarity, search = "dense", "inner product", "exact"
    width = devices = sampled = 0
    recall = 1.0
    docids: Sequence[str]
    fingerprint: str

    @abstractmethod
    def nearest(self, rows: np.ndarray, k: int) -> Nearest:
        """Edges (R, k) int64 and similarities (R, k) float64 of the k nearest others of (R,) int64 rows.

        Largest similarity first, ties by the lower row; a row does not depend on other rows.
        """


def best_of(rows: np.ndarray, proposed: np.ndarray, values: np.ndarray, k: int) -> Nearest:
    """Edges and similarities (R, k) of the best of (R, m) documents, m >= k, in the order of `GraphSource.nearest`.

    values: (R, m) float64 similarities; a document that is proposed to itself means none.
    """
    values = np.where(proposed == rows[:, None], -np.inf, values)
    order = np.lexsort((proposed, -values), axis=1)[:, :k]
    best = np.take_along_axis(values, order, axis=1)
    return np.take_along_axis(proposed, order, axis=1), np.where(np.isneginf(best), 0.0, best)


class DenseNeighbours(GraphSource):
    """N vectors, compared by inner products that are summed in float64 in a fixed order.

    devices: of torch, which propose candidates in turn; none = the processor does.
    """

    def __init__(self, vectors: VectorSource, devices: Sequence[str] = ()) -> None:
        self.vectors, self.docids, self.fingerprint = vectors, vectors.docids, vectors.fingerprint
        self.devices, self._on_devices = len(devices), [OnDevice(name, vectors) for name in devices]
        self._pairs: Any = None
        self._lock = Lock()

    def nearest(self, rows: np.ndarray, k: int) -> Nearest:
        numbers: Any = range(len(self.docids))  # ties go to the lower row
        with one_blas_thread(), np.errstate(invalid="ignore"):  # products beyond float32
            values, best = exact_search(
                self.vectors.fetch(rows), k + 1, numbers, self._proposer(rows), self.vectors.fetch, spare=SPARE
            )
        return best_of(rows, np.stack(best), np.stack(values), k)

    def _proposer(self, rows: np.ndarray) -> Propose:
        if self.devices:
            return self._on_devices[int(rows[0]) // len(rows) % self.devices].propose

        def propose(queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
            pairs = self._pairs_of(count) if len(queries) == len(rows) else None
            best = None if pairs is None else pairs.highest(rows, queries)
            return best or by_blocks(queries, count, blocks_of(self.vectors, COLUMNS), lambda *_: None)

        return propose

    def _pairs_of(self, width: int) -> Any:
        """The lists of all documents, of this width; None if there are few documents or too many, or no numba."""
        with self._lock:
            if self._pairs is None and FEW < len(self.docids) <= LISTS / (8 * width):
                with suppress(ImportError, RuntimeError):  # no numba, or no folder for what it compiles
                    from rnnreranker.parts.neighbours.pairs import Pairs

                    self._pairs = Pairs(self.vectors, width)
        return self._pairs if self._pairs is not None and self._pairs.width == width else None


def blocks_of(vectors: VectorSource, size: int) -> Any:
    """The first row and the (n, d) float32 vectors of each block."""
    count = len(vectors.docids)
    return ((first, vectors.fetch(np.arange(first, min(first + size, count)))) for first in range(0, count, size))


class ApproximateNeighbours(GraphSource):
    """N vectors whose nearest are chosen among the candidates of a Faiss index, with exact similarities.

    The width, `nprobe` of Faiss, doubles until Faiss finds `GOAL` of the exact nearest of a sample.

    Args:
        k: neighbours in the sample; work: a folder for index and sample.
    """

    search = "ivf"

    def __init__(self, exact: DenseNeighbours, k: int, work: Path) -> None:
        self._vectors, self.docids, self.fingerprint = exact.vectors, exact.docids, exact.fingerprint
        self._faiss = require("faiss", "neighbours:search=ivf", "faiss-cpu")
        work.mkdir(parents=True, exist_ok=True)
        count, dimension = len(self.docids), self._vectors.dimension
        sample = np.sort(np.random.default_rng(0).choice(count, min(SAMPLE, count), replace=False))
        sampled = work / f"sample-{fingerprint(self.fingerprint, k, SAMPLE)}.npy"
        if not sampled.is_file():
            put_array(sampled, exact.nearest(sample, k)[0])
        exact_nearest = np.load(sampled, allow_pickle=False)
        file = work / f"ivf-{fingerprint(self.fingerprint, TRAINED)}.faiss"
        if not file.is_file():
            lists = max(1, min(int(4 * np.sqrt(count)), count // TRAINED))
            flat, metric = self._faiss.IndexFlatIP(dimension), self._faiss.METRIC_INNER_PRODUCT
            index = self._faiss.IndexIVFFlat(flat, dimension, lists, metric)
            write_lists(index, count, TRAINED * lists, self._vectors.fetch, file)
        self._index = self._faiss.read_index(str(file), self._faiss.IO_FLAG_MMAP | self._faiss.IO_FLAG_READ_ONLY)
        self.width, self.sampled = 8, len(sample)
        while True:
            pairs = zip(self.nearest(sample, k)[0], exact_nearest, strict=True)
            self.recall = float(np.mean([np.intersect1d(*both).size for both in pairs]) / exact_nearest.shape[1])
            if self.recall >= GOAL or self.width >= count:
                break
            self.width *= 2

    def nearest(self, rows: np.ndarray, k: int) -> Nearest:
        own = self._vectors.fetch(rows)
        with one_faiss_thread(self._faiss):
            self._index.nprobe = min(self.width, self._index.nlist)
            proposed = self._index.search(own, min(k + 1 + SPARE_OF_LISTS, len(self.docids)))[1]
        proposed = np.where(proposed < 0, rows[:, None], proposed)  # -1 where too few are proposed
        values = [inner_products(*one) for one in zip(own, map(self._vectors.fetch, proposed), strict=True)]
        return best_of(rows, proposed, np.array(values), k)


class WordNeighbours(GraphSource):
    """N documents with weights of words, whose cosines are summed in float64 by ascending word.

    Documents without a common word are no neighbours. mark: the fingerprint of the weights.
    """

    similarity = "cosine"

    def __init__(self, words: Postings, of: str, mark: str) -> None:
        self.words, self.docids, self.of, self.fingerprint = words, words.docids, of, mark
        self._ranks = np.arange(len(self.docids))  # ties go to the lower row

    def nearest(self, rows: np.ndarray, k: int) -> Nearest:
        edges, scores = np.repeat(rows[:, None], k, axis=1), np.zeros((len(rows), k))
        own = _normalised(self.words.fetch(rows).astype(np.float64))
        best = best_products(own, self.words.postings_lists(_normalised), k + 1, self._ranks, 1)
        for line, (values, documents) in enumerate(zip(*best, strict=True)):
            others = np.flatnonzero(documents != rows[line])[:k]
            edges[line, : len(others)], scores[line, : len(others)] = documents[others], values[others]
        return edges, scores


def _normalised(matrix: csr_matrix) -> csr_matrix:
    owners = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    matrix.data = matrix.data / np.sqrt(np.bincount(owners, matrix.data * matrix.data, matrix.shape[0]))[owners]
    return matrix
