"""Vectors in a Lucene index of Anserini (flat or HNSW, full floats or int8), read through Java."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.base.java import check_fork, start_java
from rnnreranker.parts.vectors.exact import best_first, inner_products
from rnnreranker.parts.vectors.ids import Ids, LookedUp
from rnnreranker.parts.vectors.stored import Found, VectorSource

INNER_PRODUCT = ("DOT_PRODUCT", "MAXIMUM_INNER_PRODUCT")
SPARE = 32  # candidates that Lucene is asked for beyond those wanted
FIELD, ID = "vector", "id"  # Anserini's names for the vector and for the docid


class LuceneVectors(VectorSource):
    """The dense vectors of a Lucene index of versions 9 and 10; of an int8 index its full floats.

    A row is Lucene's document number. Java needs tens of microseconds a vector: a Faiss folder is faster for large
    runs.

    Raises:
        InputError: no readable index, no float vectors (such as one for BM25), a metric other than inner product,
            deleted documents.
        UnavailableError, MissingDependencyError: no Java 21 or newer; no Pyserini.
    """

    def __init__(self, path: Path) -> None:
        newest = max(path.glob("segments_*"), key=lambda file: (len(file.name), file.name))
        start_java()
        import jnius

        self._class, self._detach = jnius.autoclass, jnius.detach
        folder = self._class("java.nio.file.Paths").get(str(path.absolute()))
        try:
            directory = self._class("org.apache.lucene.store.FSDirectory").open(folder)
            opened = self._class("org.apache.lucene.index.DirectoryReader").open(directory)
            self._reader = jnius.cast("org.apache.lucene.index.IndexReader", opened)
        except jnius.JavaException as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{path}: cannot be opened as a Lucene index ({reason}); copy or build it again") from None
        self._leaves = list(self._reader.leaves().toArray())
        self._starts = [leaf.docBase for leaf in self._leaves]
        if self._reader.hasDeletions():
            raise InputError(f"{path}: has deleted documents, whose numbers are not free yet; build the index again")
        sizes = [int(values.dimension()) for values in map(_values, self._leaves) if values is not None]
        if not any(sizes):
            raise InputError(
                f"{path}: a Lucene index without dense vectors, as for BM25; expected one made by Anserini's "
                "IndexFlatDenseVectors or IndexHnswDenseVectors, a Faiss folder or a matrix"
            )
        fields = [leaf.reader().getFieldInfos().fieldInfo(FIELD) for leaf in self._leaves]
        metric = next(str(one.getVectorSimilarityFunction().name()) for one in fields if one is not None)
        if metric not in INNER_PRODUCT:
            raise InputError(f"{path}: its metric is {metric}; expected an inner product")
        self._lock = threading.RLock()  # Lucene's iterators are one thread's at a time
        self._row_of = lru_cache(maxsize=None)(self._row)  # a searcher asks for the same again
        names = LookedUp(lru_cache(maxsize=None)(self._docid), int(self._reader.maxDoc()))
        super().__init__(path, Ids(names, str(path)), dimension=sizes[0])
        self.fingerprint = fingerprint("lucene", file_digest(newest), len(self.docids), self.dimension)

    def rows(self, docids: Sequence[str]) -> np.ndarray:
        with self._in_java():
            return np.array([self._row_of(str(docid)) for docid in docids], dtype=np.int64)

    def _docid(self, row: int) -> str:
        with self._in_java():
            name = self._reader.storedFields().document(row).get(ID)
        if name is None:
            raise InputError(f"document {row} of a Lucene index has no stored field `{ID}`; build the index again")
        return str(name)

    def _read(self, rows: np.ndarray, out: np.ndarray) -> None:
        distinct, inverse = np.unique(rows, return_inverse=True)  # ascending: an iterator only goes forward
        vectors = np.empty((len(distinct), self.dimension), dtype=np.float32)
        with self._in_java():
            for number, vector in enumerate(self._vectors(distinct.tolist())):
                if vector is None:
                    docid = self.docids[int(distinct[number])]
                    raise InputError(f"{self._path}: {docid} has no vector; index the same documents again")
                vectors[number] = vector
        np.take(vectors, inverse, axis=0, out=out, mode="clip")

    def _best(self, queries: np.ndarray, hits: int, threads: int | None) -> Found:
        scores, rows, wanted = [], [], min(hits + SPARE, len(self.docids))
        for query in queries:
            with self._in_java():
                knn = self._class("org.apache.lucene.search.KnnFloatVectorQuery")(FIELD, query.tolist(), wanted)
                answer = self._class("org.apache.lucene.search.IndexSearcher")(self._reader).search(knn, wanted)
                kept = np.array([hit.doc for hit in answer.scoreDocs], dtype=np.int64)
            true = inner_products(query, self.fetch(kept))
            order = best_first(true, kept, self.docids)[:hits]
            scores.append(true[order])
            rows.append(kept[order])
        return scores, rows

    @contextmanager
    def _in_java(self) -> Iterator[None]:
        """Let one thread at a time enter Java, and detach it afterwards unless it is the main thread."""
        check_fork()
        with self._lock:
            try:
                yield
            finally:
                if threading.current_thread() is not threading.main_thread():
                    self._detach()

    def _row(self, docid: str) -> int:
        term = self._class("org.apache.lucene.index.Term")(ID, docid)
        for start, leaf in zip(self._starts, self._leaves, strict=True):
            postings = leaf.reader().postings(term)
            if postings is not None:
                return int(start) + int(postings.nextDoc())
        return -1

    def _vectors(self, rows: list[int]) -> Iterator[list[float] | None]:
        """The vector of each document, by ascending number; None if a document has none."""
        leaf = -1
        values: Any = None
        cursor: Any = None
        for row in rows:
            number = bisect.bisect_right(self._starts, row) - 1
            if number != leaf:
                leaf, values = number, _values(self._leaves[number])
                cursor = values.iterator() if values is not None and hasattr(values, "iterator") else values
            wanted = row - self._starts[leaf]
            if cursor is None or (cursor.docID() != wanted and cursor.advance(wanted) != wanted):
                yield None
            else:  # in Lucene 9 the values are the iterator
                yield values.vectorValue(*(() if cursor is values else (cursor.index(),)))


def _values(leaf: Any) -> Any:
    return leaf.reader().getFloatVectorValues(FIELD)
