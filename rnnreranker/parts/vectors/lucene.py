"""Vectors in a Lucene index of Anserini (flat or HNSW, full floats or int8), read through Java."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.base.java import check_fork
from rnnreranker.parts.vectors.exact import best_first, inner_products
from rnnreranker.parts.vectors.lucene_reader import LuceneReader
from rnnreranker.parts.vectors.validity import check_fetch, check_finite, check_search

INNER_PRODUCT = ("DOT_PRODUCT", "MAXIMUM_INNER_PRODUCT")
SPARE = 32  # candidates that Lucene is asked for beyond those wanted


def has_vectors(folder: Path) -> bool:
    """Whether a Lucene index stores vectors, without Java: by files *.vec or compound files that name one."""
    return any(folder.glob("*.vec")) or any(b".vec" in entries.read_bytes() for entries in folder.glob("*.cfe"))


class LuceneVectors:
    """A `VectorSource` over the dense vectors of a Lucene index; an int8 index keeps the full floats, and gives these.

    A row is Lucene's number of a document. Docids are looked up when they are asked for, not read beforehand. Every
    vector comes through Java on its own, some tens of microseconds each: for large runs a Faiss folder is quicker.

    Args:
        path: the folder with `segments_*`.

    Raises:
        InputError: no index that can be read there, one without vectors of floats, such as one for BM25, a metric other
            than inner product, deleted documents.
        UnavailableError: no Java 21 or newer.
        MissingDependencyError: Pyserini is not installed.
    """

    exact = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).expanduser()
        without = InputError(
            f"{self._path}: a Lucene index without dense vectors, as for BM25; expected one made by Anserini's "
            "IndexFlatDenseVectors or IndexHnswDenseVectors, a Faiss folder or a matrix"
        )
        newest = max(self._path.glob("segments_*"), key=lambda file: (len(file.name), file.name), default=None)
        if newest is None:
            raise InputError(f"{self._path}: no Lucene index in this folder (no file segments_*)")
        if any(self._path.glob("*.si")) and not has_vectors(self._path):  # said without Java
            raise without
        self._reader = LuceneReader(self._path)
        self.dimension = self._reader.dimension
        if not self.dimension:
            raise without
        if self._reader.metric not in INNER_PRODUCT:
            raise InputError(f"{self._path}: its metric is {self._reader.metric}; expected an inner product")
        self.docids: Sequence[str] = _Docids(self._reader)
        self._lock = threading.Lock()  # Lucene's iterators are one thread's at a time
        self._known: dict[str, int] = {}  # rows looked up before: a searcher asks for the same again
        self.fingerprint = fingerprint("lucene", file_digest(newest), len(self.docids), self.dimension)

    def __reduce__(self) -> tuple[Any, ...]:
        return LuceneVectors, (self._path.absolute(),)

    def rows(self, docids: Sequence[str]) -> np.ndarray:
        with self._in_java():
            for docid in docids:
                if docid not in self._known:
                    self._known[docid] = self._reader.row(str(docid))
        return np.fromiter((self._known[docid] for docid in docids), dtype=np.int64, count=len(docids))

    def fetch(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        rows, out = check_fetch(rows, out, len(self.docids), self.dimension)
        distinct, inverse = np.unique(rows, return_inverse=True)  # ascending: an iterator only goes forward
        vectors = np.empty((len(distinct), self.dimension), dtype=np.float32)
        with self._in_java():
            for number, vector in enumerate(self._reader.vectors(distinct.tolist())):
                if vector is None:
                    docid = self.docids[int(distinct[number])]
                    raise InputError(f"{self._path}: {docid} has no vector; index the same documents again")
                vectors[number] = vector
        np.take(vectors, inverse, axis=0, out=out, mode="clip")
        check_finite(out, rows, self.docids, str(self._path))
        return out

    def search(
        self, queries: np.ndarray, hits: int, threads: int | None = None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Lucene is asked for more than are wanted, since an int8 index finds them by rounded vectors; scores and order
        are those of the full ones.
        """
        queries, hits = check_search(queries, hits, self.dimension)
        scores, rows = [], []
        for query in queries:
            with self._in_java():
                wanted = min(hits + SPARE, len(self.docids))
                kept = np.array(self._reader.nearest(query.tolist(), wanted), dtype=np.int64)
            true = inner_products(query, self.fetch(kept))
            order = best_first(true, kept, self.docids)[:hits]
            scores.append(true[order])
            rows.append(kept[order])
        return scores, rows

    @contextmanager
    def _in_java(self) -> Iterator[None]:
        """One thread at a time, which leaves Java afterwards."""
        check_fork()
        with self._lock:
            try:
                yield
            finally:
                self._reader.leave()


class _Docids(Sequence[str]):
    """The docids of an index by row, each looked up when it is asked for, and remembered."""

    def __init__(self, reader: LuceneReader) -> None:
        self._reader = reader
        self._known: dict[int, str] = {}

    def __len__(self) -> int:
        return self._reader.count

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[number] for number in range(*row.indices(len(self)))]
        number = int(row) + (len(self) if row < 0 else 0)
        if not 0 <= number < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        if number not in self._known:
            check_fork()
            try:
                self._known[number] = self._reader.docid(number)
            finally:
                self._reader.leave()
        return self._known[number]

    def __iter__(self) -> Iterator[str]:
        return (self[row] for row in range(len(self)))
