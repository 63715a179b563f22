"""Vectors in a Faiss folder of Pyserini, `index` (Faiss) and `docid` (one id a line), read without a JVM."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import notice, progress
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import fingerprint
from rnnreranker.base.process.threads import one_blas_thread, one_faiss_thread
from rnnreranker.parts.vectors.exact import best_first, inner_products
from rnnreranker.parts.vectors.ids import Ids, read_ids
from rnnreranker.parts.vectors.matrix_files import LARGE, MappedRows, in_parts
from rnnreranker.parts.vectors.stored import Found, VectorSource

FLAT_MARKS = (b"IxFI", b"IxF2", b"IxFl")  # the first four bytes of flat index files
FLAT_HEADER = 45  # bytes before the vectors of a flat index file
SIZES = ((4, 8), (8, 16), (33, 37))  # bytes of its head with the dimension, the number of vectors, the metric
METRICS = ("inner product", "L2 distance")
AT_ONCE = 1000  # vectors taken out at a time: for more, Faiss starts threads that cost more than they bring
ADDED = 2**14  # vectors that are added to lists at a time
MAPPED = 2**20  # bytes; a cut-off file that is hardly more than its header crashes Faiss when it is mapped
ADVICE = "use a flat or HNSW index of the same documents"
WITHOUT_VECTORS = ("IndexLSH", "IndexRowwiseMinMax", "IndexRowwiseMinMaxFP16")
EXACT = ("IndexFlatIP", "IndexFlat", "IndexHNSWFlat", "IndexNSGFlat", "IndexIVFFlat", "IndexRefineFlat")


def faiss_vectors(path: str | os.PathLike[str]) -> VectorSource:
    """The vectors in a Faiss folder, memory-mapped; a flat index is read as a matrix, without Faiss.

    Args:
        path: the folder; row r is line r of `docid`, counted from 0.

    Raises:
        InputError: files missing, cut or of different lengths, an empty index, a metric other than inner product.
    """
    folder = Path(path).expanduser()
    file, docid = folder / "index", folder / "docid"
    for one, what in ((file, "a Faiss index"), (docid, "one docid a line")):
        if not one.is_file():
            raise InputError(f"{one}: no such file; expected {what} (the Faiss folder layout of Pyserini)")
    with open(file, "rb") as stream:
        head = stream.read(FLAT_HEADER)
    if head[:4] not in FLAT_MARKS:
        return FaissVectors(_opened(require("faiss", f"reading {file}", "faiss-cpu"), file), read_ids(docid), file)
    size = file.stat().st_size
    dimension, count, metric = (int.from_bytes(head[at:end], "little") for at, end in SIZES)
    if size != (expected := FLAT_HEADER + 4 * dimension * count):
        raise InputError(
            f"{file}: has {size} bytes but {count} vectors of {dimension} dimensions take {expected}; the file is not "
            "whole: copy or build it again"
        )
    ids = read_ids(docid)
    _check(file, metric, count, ids)
    matrix = MappedRows([np.memmap(file, np.uint8, "r", FLAT_HEADER, (count, 4 * dimension))])
    return VectorSource(file, ids, matrix, dimension, [file, docid], "faiss")


def _check(file: Path, metric: int, count: int, ids: Ids) -> None:
    if metric:
        raise InputError(
            f"{file}: its metric is {METRICS[1] if metric == 1 else f'number {metric}'}; expected {METRICS[0]}: "
            "build it with METRIC_INNER_PRODUCT (with vectors of length 1 for cosine)"
        )
    if count == 0:
        raise InputError(f"{file}: the index is empty; expected at least one vector")
    if count != len(ids.names):
        raise InputError(
            f"{file.with_name('docid')}: has {len(ids.names)} docids but the index has {count} vectors; "
            "expected one line per vector: copy or build the folder again"
        )


class FaissVectors(VectorSource):
    """The vectors of a Faiss index, of a folder or in memory, such as that of a Pyserini searcher.

    Args:
        docids: of its rows; file: of the index, beside `docid`; None = an index in memory.

    Raises:
        InputError: as `faiss_vectors`; an index without vectors of its documents.
    """

    def __init__(self, index: Any, docids: Ids | Sequence[str], file: Path | None = None) -> None:
        self._faiss = faiss = require("faiss", "reading vectors from a Faiss index", "faiss-cpu")
        self._owner = index  # what is downcast does not own the memory
        self._index = index = faiss.downcast_index(index) if isinstance(index, faiss.Index) else index
        path, self.kind = file or Path("the searcher's index"), type(index).__name__
        ids = docids if isinstance(docids, Ids) else Ids(list(docids), str(path))
        if not isinstance(index, faiss.Index):
            raise InputError(f"{path}: a {self.kind}; expected an index of float vectors")
        self._lists = faiss.try_extract_index_ivf(index)
        inside = self.kind if self._lists is None else type(faiss.downcast_index(self._lists)).__name__
        if self.kind in WITHOUT_VECTORS or "FastScan" in inside:  # the latter crash when they are asked for a vector
            raise InputError(f"{path}: no vectors can be read from a {self.kind}; {ADVICE}")
        if isinstance(index, faiss.IndexIDMap):  # IndexIDMap2 is one too
            raise InputError(f"{path}: {self.kind} has ids of its own, not lines of `docid`; {ADVICE}")
        _check(path, index.metric_type, index.ntotal, ids)
        rows = None
        if isinstance(index, faiss.IndexFlat):
            values = faiss.rev_swig_ptr(index.get_xb(), index.ntotal * index.d)
            rows = MappedRows([values.reshape(index.ntotal, index.d)])
        super().__init__(path, ids, rows, int(index.d), [file, file.with_name("docid")] if file else [], "faiss")
        self.exact = self._warned = self.kind in EXACT
        self._many = file is not None and file.stat().st_size >= LARGE
        if file is None:
            self.fingerprint = fingerprint("faiss", self.kind, str(index.ntotal), "\n".join(self.docids))
            self.opened = FaissVectors, (index, list(self.docids))

    def _read(self, rows: np.ndarray, out: np.ndarray) -> None:
        """A lossy index gives decoded vectors, with one warning; after PCA or OPQ in the space of the queries."""
        if self._matrix is not None:
            return super()._read(rows, out)
        if not self._warned:
            self._warned = True
            notice(f"{self._path}: {self.kind} keeps vectors in a lossy form; similarities are approximate")
        try:
            if self._lists is not None and not isinstance(self._index, self._faiss.IndexRefineFlat):
                self._lists.make_direct_map()  # once; the other gives vectors by itself
            in_parts(lambda part: self._index.reconstruct_batch(rows[part], out[part]), len(rows), self._many, AT_ONCE)
        except RuntimeError as error:
            raise InputError(
                f"{self._path}: no vectors can be read from a {self.kind} ({_reason(error)}); {ADVICE}"
            ) from None

    def _best(self, queries: np.ndarray, hits: int, threads: int | None) -> Found:
        if self._matrix is not None:
            return super()._best(queries, hits, threads)
        threads = threads or self._faiss.omp_get_max_threads()
        with ThreadPoolExecutor(threads, initializer=self._faiss.omp_set_num_threads, initargs=(1,)) as pool:
            best = list(pool.map(lambda query: self._search_one(query, min(hits, len(self.docids))), queries))
        return [scores for scores, _ in best], [rows for _, rows in best]

    def _search_one(self, query: np.ndarray, hits: int) -> tuple[np.ndarray, np.ndarray]:
        try:
            scores, rows = self._index.search(query[None], hits)
        except RuntimeError as error:  # settings of a search that are in the file, as that no list be looked at
            raise InputError(f"{self._path}: cannot be searched ({_reason(error)}); build it again") from None
        kept = rows[0][rows[0] >= 0]
        true = inner_products(query, self.fetch(kept)) if self.exact else scores[0][rows[0] >= 0].astype(np.float64)
        order = best_first(true, kept, self.docids)
        return true[order], kept[order]


def _opened(faiss: Any, path: Path) -> Any:
    if path.open("rb").read(2) == b"IB":
        raise InputError(f"{path}: a binary Faiss index, which holds no float vectors; {ADVICE}")
    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if path.stat().st_size >= MAPPED else 0)
    except (RuntimeError, MemoryError) as error:
        raise InputError(f"{path}: not a whole Faiss index ({_reason(error)}); copy or build it again") from None


def write_lists(index: Any, count: int, trained: int, fetch: Callable[[np.ndarray], np.ndarray], file: Path) -> None:
    """Train and fill a Faiss index with lists, and write it whole; the same bytes every time.

    Args:
        count: of the vectors; trained: how many of them train it; fetch: rows → (n, d) float32 vectors.
    """
    faiss, begun = require("faiss", f"writing {file}", "faiss-cpu"), file.with_suffix(".begun")
    chosen = np.sort(np.random.default_rng(0).choice(count, min(count, trained), replace=False))
    with one_faiss_thread(faiss), one_blas_thread():
        index.train(fetch(chosen))
        for first in progress(range(0, count, ADDED), unit="blocks", what=file.stem):
            index.add(fetch(np.arange(first, min(first + ADDED, count))))
        faiss.write_index(index, str(begun))
    os.replace(begun, file)


def _reason(error: Exception) -> str:
    return str(error).split("failed:")[-1].strip().splitlines()[0].split(".cpp:")[-1].split(": ", 1)[-1]
