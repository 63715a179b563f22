"""The documents of a graph, how they are compared, and the nearest others of each, exact or approximate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import require
from rnnreranker.base.files import fingerprint
from rnnreranker.base.process.threads import one_blas_thread, one_faiss_thread
from rnnreranker.parts.neighbours.on_device import OnDevice
from rnnreranker.parts.vectors import VectorSource
from rnnreranker.parts.vectors.exact import by_blocks, exact_search, inner_products
from rnnreranker.parts.vectors.faiss_folder import write_lists
from rnnreranker.parts.vectors.ids import Reopened
from rnnreranker.parts.vectors.npy_files import put_array

COLUMNS = 8192  # documents that a block of rows is compared with at a time
SPARE, SPARE_OF_OTHERS = 9, 16  # documents proposed beyond a list and the document itself; by Faiss and by devices
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
    """

    of, similarity, search = "dense", "inner product", "exact"
    width = devices = 0
    docids: Sequence[str]
    fingerprint: str

    @abstractmethod
    def nearest(self, rows: np.ndarray, k: int, first: int = 0) -> Nearest:
        """Edges (R, k) int64 and similarities (R, k) float64 of the k nearest others among the rows from `first` on.

        Largest similarity first, ties by the lower row; a row does not depend on other rows. rows: (R,) int64.
        """


def no_neighbours(rows: np.ndarray, k: int) -> Nearest:
    """Edges and similarities (R, k) without neighbours, to be filled."""
    return np.repeat(rows[:, None], k, axis=1), np.zeros((len(rows), k))


def best_of(rows: np.ndarray, proposed: np.ndarray, values: np.ndarray, k: int) -> Nearest:
    """Edges and similarities (R, k) of the best of (R, m) documents, in the order of `GraphSource.nearest`.

    values: (R, m) float64 similarities; a document that is proposed to itself means none.
    """
    edges, scores = no_neighbours(rows, k)
    values = np.where(proposed == rows[:, None], -np.inf, values)
    order = np.lexsort((proposed, -values), axis=1)[:, :k]
    best = np.take_along_axis(values, order, axis=1)
    edges[:, : order.shape[1]] = np.take_along_axis(proposed, order, axis=1)
    scores[:, : order.shape[1]] = np.where(np.isneginf(best), 0.0, best)
    return edges, scores


class DenseNeighbours(GraphSource):
    """N vectors, compared by inner products that are summed in float64 in a fixed order.

    devices: of torch, which propose candidates in turn; none = the processor does.
    """

    def __init__(self, vectors: VectorSource, devices: Sequence[str] = ()) -> None:
        self.vectors, self.docids, self.fingerprint = vectors, vectors.docids, vectors.fingerprint
        self.devices, self.on_devices = len(devices), [OnDevice(name, vectors) for name in devices]

    def nearest(self, rows: np.ndarray, k: int, first: int = 0) -> Nearest:
        def propose(queries: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
            if self.devices:
                return self.on_devices[int(rows[0]) // len(rows) % self.devices].propose(queries, wanted, first)
            with one_blas_thread():
                return by_blocks(queries, wanted, self.blocks(first), lambda *_: None)

        numbers: Any = range(len(self.docids) - first)  # ties go to the lower row
        if not numbers or not len(rows):
            return no_neighbours(rows, k)
        spare = SPARE_OF_OTHERS if self.devices else SPARE
        with np.errstate(invalid="ignore"):  # products beyond float32
            values, best = exact_search(
                *(self.vectors.fetch(rows), k + 1, numbers, propose),
                *(lambda positions: self.vectors.fetch(positions + first), spare),
            )
        return best_of(rows, np.stack(best) + first, np.stack(values), k)

    def similarities(self, rows: np.ndarray, edges: np.ndarray) -> np.ndarray:
        """(R, k) float64: similarities of (R,) rows and (R, k) others, equal to those of `nearest`."""
        own = self.vectors.fetch(rows)
        return np.array([inner_products(one, self.vectors.fetch(line)) for one, line in zip(own, edges, strict=True)])

    def blocks(self, first: int = 0) -> Iterator[tuple[int, np.ndarray]]:
        """The vectors from row `first` on, in blocks, each with its start relative to `first`."""
        count = len(self.docids)
        for start in range(first, count, COLUMNS):
            yield start - first, self.vectors.fetch(np.arange(start, min(start + COLUMNS, count)))


class ApproximateNeighbours(GraphSource):
    """N vectors whose nearest are chosen among the candidates of a Faiss index, with exact similarities.

    The width, `nprobe` of Faiss, doubles until Faiss finds `GOAL` of the exact nearest of a sample.

    Args:
        k: neighbours in the sample; work: a folder for index and sample.
    """

    search = "ivf"

    def __init__(self, exact: DenseNeighbours, k: int, work: Path) -> None:
        self.exact, self.docids, self.fingerprint = exact, exact.docids, exact.fingerprint
        self._faiss = require("faiss", "neighbours:search=ivf", "faiss-cpu")
        work.mkdir(parents=True, exist_ok=True)
        count, vectors = len(self.docids), exact.vectors
        self.sample = np.sort(np.random.default_rng(0).choice(count, min(SAMPLE, count), replace=False))
        sampled = work / f"sample-{fingerprint(self.fingerprint, k, SAMPLE)}.npy"
        if not sampled.is_file():
            put_array(sampled, exact.nearest(self.sample, k)[0])
        self._nearest = np.load(sampled, allow_pickle=False)
        file = work / f"ivf-{fingerprint(self.fingerprint, TRAINED)}.faiss"
        if not file.is_file():
            lists = max(1, min(int(4 * np.sqrt(count)), count // TRAINED))
            flat, metric = self._faiss.IndexFlatIP(vectors.dimension), self._faiss.METRIC_INNER_PRODUCT
            index = self._faiss.IndexIVFFlat(flat, vectors.dimension, lists, metric)
            write_lists(index, count, TRAINED * lists, vectors.fetch, file)
        self._index = self._faiss.read_index(str(file), self._faiss.IO_FLAG_MMAP | self._faiss.IO_FLAG_READ_ONLY)
        self.width = 8
        while self.width < count and self.recall_of(self.nearest(self.sample, k)[0]) < GOAL:
            self.width *= 2

    def recall_of(self, edges: np.ndarray) -> float:
        shared = [np.intersect1d(one, other).size for one, other in zip(edges, self._nearest, strict=True)]
        return float(np.mean(shared) / self._nearest.shape[1])

    def nearest(self, rows: np.ndarray, k: int, first: int = 0) -> Nearest:
        with one_faiss_thread(self._faiss):
            self._index.nprobe = min(self.width, self._index.nlist)
            wanted = min(k + 1 + SPARE_OF_OTHERS, len(self.docids))
            proposed = self._index.search(self.exact.vectors.fetch(rows), wanted)[1]
        proposed = np.where(proposed < first, rows[:, None], proposed)  # -1 where too few are proposed
        return best_of(rows, proposed, self.exact.similarities(rows, proposed), k)
