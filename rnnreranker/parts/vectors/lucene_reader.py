"""A Lucene index as Java shows it: docids and vectors by number, Lucene's own nearest neighbours."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.java import start_java


class LuceneReader:
    """A Lucene index through Java: docids and vectors by Lucene's number of a document; versions 9 and 10.

    Args:
        path: the folder with `segments_*`.

    Attributes:
        count: documents. dimension: of the vectors of floats, 0 where there are none. metric: Lucene's name of it, "".

    Raises:
        InputError: not an index that this version of Lucene reads, or one with deleted documents.
        UnavailableError, MissingDependencyError: as `start_java`.
    """

    FIELD = "vector"  # Anserini's names for the vector and for the docid
    ID = "id"

    def __init__(self, path: Path) -> None:
        start_java()
        import jnius

        self._class = jnius.autoclass
        self._detach = jnius.detach
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
        self.count = int(self._reader.maxDoc())
        if self._reader.hasDeletions():
            raise InputError(f"{path}: has deleted documents, whose numbers are not free yet; build the index again")
        sizes = [values.dimension() for values in map(self._values, self._leaves) if values is not None]
        self.dimension = int(sizes[0]) if sizes else 0
        fields = [leaf.reader().getFieldInfos().fieldInfo(self.FIELD) for leaf in self._leaves if self.dimension]
        metrics = [str(field.getVectorSimilarityFunction().name()) for field in fields if field is not None]
        self.metric = metrics[0] if metrics else ""

    def docid(self, row: int) -> str:
        """The docid of a document; InputError: it has none."""
        name = self._reader.storedFields().document(row).get(self.ID)
        if name is None:
            raise InputError(f"document {row} of a Lucene index has no stored field `{self.ID}`; build the index again")
        return str(name)

    def row(self, docid: str) -> int:
        """The number of the document with a docid, or -1."""
        term = self._class("org.apache.lucene.index.Term")(self.ID, docid)
        for start, leaf in zip(self._starts, self._leaves, strict=True):
            postings = leaf.reader().postings(term)
            if postings is not None:
                return int(start) + int(postings.nextDoc())
        return -1

    def vectors(self, rows: list[int]) -> Iterator[list[float] | None]:
        """The vector of each document, ascending numbers; None where a document has none."""
        leaf = -1
        values: Any = None
        cursor: Any = None
        for row in rows:
            number = bisect.bisect_right(self._starts, row) - 1
            if number != leaf:
                leaf, values = number, self._values(self._leaves[number])
                cursor = values.iterator() if values is not None and hasattr(values, "iterator") else values
            wanted = row - self._starts[leaf]
            if cursor is None or (cursor.docID() != wanted and cursor.advance(wanted) != wanted):
                yield None
            elif cursor is values:  # Lucene 9: the values are the iterator
                yield values.vectorValue()
            else:
                yield values.vectorValue(cursor.index())

    def nearest(self, query: list[float], hits: int) -> list[int]:
        """The documents that Lucene finds nearest, at most `hits`."""
        knn = self._class("org.apache.lucene.search.KnnFloatVectorQuery")(self.FIELD, query, hits)
        answer = self._class("org.apache.lucene.search.IndexSearcher")(self._reader).search(knn, hits)
        return [int(hit.doc) for hit in answer.scoreDocs]

    def leave(self) -> None:
        """Take this thread out of Java, unless it is the main one: Java keeps those that end while they are in it."""
        if threading.current_thread() is not threading.main_thread():
            self._detach()

    def _values(self, leaf: Any) -> Any:
        return leaf.reader().getFloatVectorValues(self.FIELD)
