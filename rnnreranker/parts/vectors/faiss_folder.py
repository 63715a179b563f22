"""Vectors in a Faiss folder of Pyserini, `index` (Faiss) and `docid` (one id a line), read without a JVM."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import fingerprint
from rnnreranker.parts.vectors.exact import best_first, exact_search, inner_products
from rnnreranker.parts.vectors.ids import Ids, read_ids
from rnnreranker.parts.vectors.mapped import LARGE, MappedRows, in_parts
from rnnreranker.parts.vectors.stored import VectorSource

FLAT_MARKS = (b"IxFI", b"IxF2", b"IxFl")  # the first four bytes of flat index files
FLAT_HEADER = 45  # bytes before the vectors of a flat index file
SIZES = ((4, 8), (8, 16))  # bytes of its head with the dimension and the number of vectors; bytes 33 to 37: the metric
INNER_PRODUCT, L2 = 0, 1
AT_ONCE = 1000  # vectors taken out at a time: for more, Faiss starts threads that cost more than they bring
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
        index = _opened(require("faiss", f"reading {file}", "faiss-cpu"), file)
        source: VectorSource = FaissVectors(index, read_ids(docid), file, [file, docid])
        return source
    size, dimension, count = file.stat().st_size, *(int.from_bytes(head[at:end], "little") for at, end in SIZES)
    if size != (expected := FLAT_HEADER + 4 * dimension * count):
        raise InputError(
            f"{file}: has {size} bytes but {count} vectors of {dimension} dimensions take {expected}; the file is not "
            "whole: copy or build it again"
        )
    ids = read_ids(docid)
    _check(file, int.from_bytes(head[33:37], "little"), count, ids)
    matrix = MappedRows([np.memmap(file, np.uint8, "r", FLAT_HEADER, (count, 4 * dimension))])
    return VectorSource(file, ids, matrix, dimension, [file, docid], "faiss")


def _check(file: Path, metric: int, count: int, ids: Ids) -> None:
    if metric != INNER_PRODUCT:
        raise InputError(
            f"{file}: its metric is {'L2 distance' if metric == L2 else f'number {metric}'}; expected inner product: "
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
        docids: of its rows; path: for errors; files: of index and docids, none for an index in memory.

    Raises:
        InputError: as `faiss_vectors`.
    """

    def __init__(
        self,
        index: Any,
        docids: Ids | Sequence[str],
        path: Path = Path("the searcher's index"),
        files: Sequence[Path] = (),
    ) -> None:
        self._faiss = require("faiss", "reading vectors from a Faiss index", "faiss-cpu")
        self._owner = index  # what is downcast does not own the memory
        self._index = index = self._faiss.downcast_index(index) if isinstance(index, self._faiss.Index) else index
        ids = docids if isinstance(docids, Ids) else Ids(list(docids), str(path))
        if not isinstance(index, self._faiss.Index):
            raise InputError(f"{path}: a {type(index).__name__}; expected an index of float vectors")
        super().__init__(path, ids, None, int(index.d), files, "faiss")
        self.kind = type(self._inner).__name__
        if self.kind in WITHOUT_VECTORS:
            raise InputError(f"{path}: no vectors can be read from a {self.kind}; {ADVICE}")
        _check(path, index.metric_type, index.ntotal, ids)
        if self._positions is not None and (self._positions < 0).any():
            raise InputError(
                f"{path}: its own ids are not the numbers 0..{index.ntotal - 1}, so they name no line of `docid`; "
                "build the index without ids of its own"
            )
        self.exact = self._warned = self.kind in EXACT
        self._many = bool(files) and files[0].stat().st_size >= LARGE
        if not files:
            self.fingerprint = fingerprint("faiss", self.kind, str(index.ntotal), "\n".join(self.docids))
            self.opened = FaissVectors, (index, list(self.docids), path)

    def _read(self, rows: np.ndarray, out: np.ndarray) -> None:
        """A lossy index gives decoded vectors, with one warning; after PCA or OPQ in the space of the queries."""
        if not self._warned:
            self._warned = True
            notice(f"{self._path}: {self.kind} keeps vectors in a lossy form; similarities are approximate")
        positions, inner = rows if self._positions is None else self._positions[rows], self._with_vectors
        try:
            in_parts(lambda part: inner.reconstruct_batch(positions[part], out[part]), len(rows), self._many, AT_ONCE)
        except RuntimeError as error:
            raise self._without(_reason(error)) from None

    def _best(self, queries: np.ndarray, hits: int, threads: int | None) -> tuple[list[np.ndarray], list[np.ndarray]]:
        before = self._faiss.omp_get_max_threads()
        if isinstance(self._inner, self._faiss.IndexFlat):
            self._faiss.omp_set_num_threads(threads or before)
            try:
                return exact_search(queries, hits, self.docids, self._propose, self.fetch)
            finally:
                self._faiss.omp_set_num_threads(before)
        hits = min(hits, len(self.docids))
        with ThreadPoolExecutor(threads or before, initializer=self._faiss.omp_set_num_threads, initargs=(1,)) as pool:
            best = list(pool.map(lambda query: self._search_one(query, hits), queries))
        return [scores for scores, _ in best], [rows for _, rows in best]

    def _propose(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        scores, rows = self._searched(queries, count)
        if (rows < 0).any():  # Faiss leaves entries empty where a score is not a number
            raise InputError(f"{self._path}: has vectors with NaN or infinite values; build the index again")
        return scores, rows

    def _search_one(self, query: np.ndarray, hits: int) -> tuple[np.ndarray, np.ndarray]:
        scores, rows = self._searched(query[None], hits)
        real = rows[0] >= 0
        kept, true = rows[0][real], scores[0][real].astype(np.float64)
        if self.exact:
            true = inner_products(query, self.fetch(kept))
        order = best_first(true, kept, self.docids)
        return true[order], kept[order]

    def _searched(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        try:
            answer: tuple[np.ndarray, np.ndarray] = self._index.search(queries, count)
        except RuntimeError as error:  # settings of a search that are in the file, as that no list be looked at
            raise InputError(f"{self._path}: cannot be searched ({_reason(error)}); build it again") from None
        return answer

    @cached_property
    def _inner(self) -> Any:
        if isinstance(self._index, self._faiss.IndexIDMap):  # IndexIDMap2 is one too
            return self._faiss.downcast_index(self._index.index)
        return self._index

    @cached_property
    def _positions(self) -> np.ndarray | None:
        """(n,) int64: row → position inside an IDMap, -1 without a vector; None without an IDMap."""
        if not isinstance(self._index, self._faiss.IndexIDMap):
            return None
        names = self._faiss.vector_to_array(self._index.id_map)
        positions = np.full(len(self.docids), -1, dtype=np.int64)
        inside = (names >= 0) & (names < len(positions))
        positions[names[inside]] = np.flatnonzero(inside)
        return positions

    @cached_property
    def _with_vectors(self) -> Any:
        """The inner index, prepared for reconstruction; InputError: a type without it."""
        inner = self._inner
        try:
            if not isinstance(inner, self._faiss.IndexRefineFlat):  # that one gives vectors by itself
                with_lists = self._faiss.try_extract_index_ivf(inner)
                if with_lists is not None:
                    kind = type(self._faiss.downcast_index(with_lists)).__name__
                    if "FastScan" in kind:  # read from a file, these crash when asked for a vector
                        raise RuntimeError("packed codes")
                    with_lists.make_direct_map()
            inner.reconstruct(0)
        except RuntimeError as error:
            raise self._without(_reason(error)) from None
        return inner

    def _without(self, reason: str) -> InputError:
        return InputError(f"{self._path}: no vectors can be read from a {self.kind} ({reason}); {ADVICE}")


def _opened(faiss: Any, path: Path) -> Any:
    if path.open("rb").read(2) == b"IB":
        raise InputError(f"{path}: a binary Faiss index, which holds no float vectors; {ADVICE}")
    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if path.stat().st_size >= MAPPED else 0)
    except (RuntimeError, MemoryError) as error:
        raise InputError(f"{path}: not a whole Faiss index ({_reason(error)}); copy or build it again") from None


def _reason(error: Exception) -> str:
    return str(error).split("failed:")[-1].strip().splitlines()[0].split(".cpp:")[-1].split(": ", 1)[-1]
