"""The dense part of documents that have vectors of their own: in JSON, in parquet, in a matrix, given in Python."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.data.document import Document
from rnnreranker.parts.base import BLOCK
from rnnreranker.parts.encoded import EncodedPart
from rnnreranker.parts.vectors import open_vectors
from rnnreranker.parts.vectors.part import DTYPES, OWN, DensePart


class OwnVectors(DensePart):
    """One vector a document, which the document has; no encoder is loaded, and the index names none.

    Args:
        dtype: as of `DensePart`.

    Raises:
        InputError: `dtype` unknown.
    """

    encoder: ClassVar[str] = ""
    packages: ClassVar[tuple[str, ...]] = ("faiss-cpu",)

    def __init__(self, dtype: str = "float32") -> None:
        if dtype not in DTYPES:
            raise InputError(f"dtype={dtype}: expected {' or '.join(DTYPES)}")
        EncodedPart.__init__(self, OWN)
        self._dtype, self.dimension = dtype, 0
        self._digest = hashlib.sha256()

    @property
    def marks(self) -> tuple[Any, ...]:  # type: ignore[override]
        return OWN, self._dtype, self._digest.hexdigest()[:16]

    @property
    def blocks_at_once(self) -> int:
        return 1

    def extend(self, index: Path) -> None:
        """Take the vectors of the documents that the index has."""
        self._old = open_vectors(index)
        self.dimension = self._old.dimension

    def add(self, documents: Sequence[Document]) -> None:
        """Take the vectors of the next documents.

        Raises:
            InputError: a document without a vector, or with one of another length (with file:line).
        """
        known = 0 if self._old is None else min(max(len(self._old.docids) - self._count, 0), len(documents))
        for document in documents[known:]:
            where, vector = document.where or f"document {document.docid}", document.vector
            if vector is None or len(vector) != (self.dimension or len(vector)):
                has = "no vector" if vector is None else f"a vector of {len(vector)} numbers"
                raise InputError(f"{where}: {has}; expected {self.dimension or 'some'} numbers, as all documents have")
            self.dimension = len(vector)
        vectors = np.empty((len(documents), self.dimension), dtype=np.float32)
        if self._old is not None and known:
            vectors[:known] = self._old.fetch(np.arange(self._count, self._count + known))
        for row, document in enumerate(documents[known:], known):
            vectors[row] = document.vector
        self._digest.update(vectors.tobytes())
        self._count += len(documents)
        self._files.append(self._folder / f"{len(self._files):06d}.npy")
        self._keep(self._files[-1], vectors)

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """Write `index` or `vectors.npy`; dimension, dtype, and whose vectors they are."""
        self.write_vectors(folder, count)
        return {"dimension": self.dimension, "dtype": self._dtype, "vectors": OWN}


def documents_of_vectors(path: Path) -> Iterator[Document]:
    """The documents of a matrix with its ids beside it, or of an index folder: vectors without texts.

    Raises:
        InputError: as `open_vectors`; NaN or infinite values.
    """
    source = open_vectors(path)
    for start in range(0, len(source.docids), BLOCK):
        docids = source.docids[start : start + BLOCK]
        for docid, vector in zip(docids, source.fetch(np.arange(start, start + len(docids))), strict=True):
            yield Document(docid, "", vector=vector)
