"""Vectors in a Faiss folder of Pyserini, `index` (Faiss) and `docid` (one id a line), read without a JVM."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import notice, progress
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import fingerprint
from rnnreranker.base.jobs import one_blas_thread, one_faiss_thread
from rnnreranker.parts.vectors.exact import best_first, inner_products
from rnnreranker.parts.vectors.ids import Ids, read_ids
from rnnreranker.parts.vectors.stored import LARGE, Found, VectorSource, in_parts

FLAT_MARKS = (b"IxFI", b"IxF2", b"IxFl")  # the first four bytes of flat index files
HEAD = struct.Struct("<4siqqq?iq")  # of a flat index: mark, dimension, vectors, two numbers, trained, metric, floats
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
    file, docid = (Path(path).expanduser() / name for name in ("index", "docid"))
    if not (file.is_file() and docid.is_file()):
        raise InputError(f"{file.parent}: expected the files `index` and `docid` (the Faiss folder layout of Pyserini)")
    with open(file, "rb") as stream:
        start = stream.read(HEAD.size)
    if start[:4] not in FLAT_MARKS or len(start) < HEAD.size:
        return FaissVectors(_opened(file), read_ids(docid), file)
    _, dimension, count, *_, metric, _ = HEAD.unpack(start)
    size, expected = file.stat().st_size, HEAD.size + 4 * dimension * count
    if size != expected:
        raise InputError(
            f"{file}: is not whole, has {size} bytes; {count} vectors of {dimension} dimensions take {expected}; copy "
            "or build it again"
        )
    ids = read_ids(docid)
    _check(file, metric, count, ids)
    matrix = np.memmap(file, np.uint8, "r", HEAD.size, (count, 4 * dimension))
    return VectorSource(file, ids, matrix, dimension, [file, docid], "faiss")


def _check(file: Path, metric: int, count: int, ids: Ids) -> None:
    if metric:
        raise InputError(
            f"{file}: its metric is {'L2 distance' if metric == 1 else metric}; expected inner product: build it with "
            "METRIC_INNER_PRODUCT (with vectors of length 1 for cosine)"
        )
    if count == 0 or count != len(ids.names):
        raise InputError(
            f"{file.with_name('docid')}: has {len(ids.names)} docids but the index has {count} vectors; "
            "expected one line per vector, at least one: copy or build the folder again"
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
        self._owner, floats = index, isinstance(index, faiss.Index)  # what is downcast does not own the memory
        self._index = index = faiss.downcast_index(index) if floats else index
        path, self.kind = file or Path("the searcher's index"), type(index).__name__
        self._lists = faiss.try_extract_index_ivf(index) if floats else None
        inside = self.kind if self._lists is None else type(faiss.downcast_index(self._lists)).__name__
        # of those with FastScan Faiss crashes when it is asked for a vector; IndexIDMap2 is an IndexIDMap too
        without = self.kind in WITHOUT_VECTORS or "FastScan" in inside or isinstance(index, faiss.IndexIDMap)
        if without or not floats:
            raise InputError(f"{path}: no vectors can be read by line of `docid` from a {self.kind}; {ADVICE}")
        ids = docids if isinstance(docids, Ids) else Ids(list(docids), str(path))
        _check(path, index.metric_type, index.ntotal, ids)
        files = [file, file.with_name("docid")] if file else []
        super().__init__(path, ids, dimension=int(index.d), files=files, kind="faiss")
        self.exact = self._warned = self.kind in EXACT
        self._many = file is not None and file.stat().st_size >= LARGE
        if file is None:
            self.fingerprint = fingerprint("faiss", self.kind, str(index.ntotal), "\n".join(self.docids))
            self.opened = FaissVectors, (index, list(self.docids))
        if self._lists is not None and not isinstance(index, faiss.IndexRefineFlat):
            with self._working():
                self._lists.make_direct_map()  # here, as threads that read cannot; the other gives vectors by itself

    def _read(self, rows: np.ndarray, out: np.ndarray) -> None:
        """A lossy index gives decoded vectors, with one warning; after PCA or OPQ in the space of the queries."""
        if not self._warned:
            self._warned = True
            notice(f"{self._path}: {self.kind} keeps vectors in a lossy form; similarities are approximate")
        with self._working():
            in_parts(lambda part: self._index.reconstruct_batch(rows[part], out[part]), len(rows), self._many, AT_ONCE)

    def _best(self, queries: np.ndarray, hits: int, threads: int | None) -> Found:
        threads = threads or self._faiss.omp_get_max_threads()
        hits = min(hits, len(self.docids))

        def best(query: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            with self._working():
                scores, rows = (one[0] for one in self._index.search(query[None], hits))
            kept = rows[rows >= 0]
            true = inner_products(query, self.fetch(kept)) if self.exact else scores[rows >= 0].astype(np.float64)
            order = best_first(true[None], kept[None], self.docids)[0]
            return true[order], kept[order]

        with ThreadPoolExecutor(threads, initializer=self._faiss.omp_set_num_threads, initargs=(1,)) as pool:
            pairs = list(pool.map(best, queries))
        return [scores for scores, _ in pairs], [rows for _, rows in pairs]

    @contextmanager
    def _working(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise InputError(
                f"{self._path}: no vectors can be read from a {self.kind} ({_reason(error)}); {ADVICE}"
            ) from None


def _opened(path: Path) -> Any:
    faiss = require("faiss", f"reading {path}", "faiss-cpu")
    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if path.stat().st_size >= MAPPED else 0)
    except (RuntimeError, MemoryError) as error:
        raise InputError(
            f"{path}: not a whole Faiss index of float vectors ({_reason(error)}); copy or build it again"
        ) from None


def flat_head(count: int, dimension: int) -> bytes:
    """What stands before the float32 vectors of a flat index of inner products."""
    return HEAD.pack(FLAT_MARKS[0], dimension, count, 2**20, 2**20, True, 0, count * dimension)


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
