"""The part `dense`: vectors of documents, as a Faiss folder or a matrix."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.files import fingerprint
from rnnreranker.base.settings import setting
from rnnreranker.data.document import Document
from rnnreranker.encode.kinds import Encoder
from rnnreranker.encode.params import EncoderParams
from rnnreranker.parts.base import BLOCK, Block, EncodedPart, Part
from rnnreranker.parts.vectors import VectorSource, open_vectors
from rnnreranker.parts.vectors.faiss_folder import flat_head
from rnnreranker.parts.vectors.npy_files import write_header

OWN = "own"  # in place of an encoder: the vectors that documents have themselves


@dataclass(frozen=True)
class DenseParams(settings.Params):
    """Settings of stored vectors; InputError: values out of range."""

    encoder: str = setting("minilm", "a name, a folder or a Hugging Face id, NAME:pooling=cls,…", flag="encoder")
    dtype: Literal["float32", "float16"] = setting(
        "float32", "stored vectors: float32 = Faiss folder, float16 = vectors.npy, half the size", flag="dtype"
    )

    @property
    def kept(self) -> str:
        return self.dtype


class DensePart(EncodedPart):
    """One vector a document: float32 = a Faiss folder; float16 = `vectors.npy`, half the size, cosines change by less
    than 1e-3.
    """

    name, gives, gives_queries, rank = "dense", "vectors", "query vectors", 0
    Params: ClassVar[type[settings.Params]] = DenseParams
    OfEncoder, encoder, automatic = EncoderParams, "encoder", True
    encoders = Encoder

    @classmethod
    def make(cls, params: Any, beside: Mapping[str, Any]) -> Part:
        return OwnVectors(params) if params.encoder == OWN else super().make(params, beside)

    @classmethod
    def inputs(cls, params: Any) -> str | None:
        return fingerprint(OWN, params.dtype) if params.encoder == OWN else super().inputs(params)

    @classmethod
    def at(cls, path: Path) -> Path | None:
        there = path.is_file() or any((path / name).is_file() for name in ("index", "vectors.npy"))
        return path if there else None

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> VectorSource:
        return open_vectors(at)

    def mark_of(self, texts: list[str]) -> str:
        mark = super().mark_of(texts)
        if self._encoder.graph is not None and (self.of_documents.graph is not None or self._computed):
            self.marks = self._encoder.fingerprint, self.params.kept, "graph"
        return mark

    def encoded(self, documents: Sequence[Document]) -> Block:
        options: dict[str, Any] = {"threads": self._threads, "what": "documents", "progress": True}
        return self.checked(documents, self.of_documents.encode([document.text for document in documents], **options))

    def checked(self, documents: Sequence[Document], vectors: np.ndarray) -> Block:
        """The (n, d) float32 vectors of documents; InputError: one is beyond the type that the index keeps."""
        with np.errstate(over="ignore"):
            beyond = np.isinf(vectors.astype(self.params.dtype)).any(axis=1)
        if beyond.any():
            document = documents[int(beyond.argmax())]
            raise InputError(
                f"{document.where or 'documents'}: the vector of document {document.docid} is beyond "
                f"{self.params.dtype}; give {argument('dtype', 'float32')}"
            )
        return {"vectors": vectors}

    def taken(self, rows: np.ndarray, texts: list[str]) -> Block:
        return {"vectors": self._old.fetch(rows)}

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """Write `index` or `vectors.npy`.

        `cosine`: the lowest to the float32 vectors of the model, unless the model computed them.
        """
        encoder, flat, more = self._encoder, self.params.dtype == "float32", dict[str, Any]()
        with open(folder / ("index" if flat else "vectors.npy"), "wb") as stream:
            if flat:
                stream.write(flat_head(count, encoder.dimension))
            else:
                write_header(stream, "<f2", (count, encoder.dimension))
            for block in self.stored():
                stream.write(block["vectors"].astype("<f4" if flat else "<f2", copy=False).tobytes())
        if encoder.graph is not None:
            more["graph"] = {"key": encoder.graph.folder.name, "content": encoder.graph.content}
            more["cosine"] = encoder.graph.about["cosine"]
        about = {"dimension": encoder.dimension, "dtype": self.params.dtype}
        return {**about, "encoder": self.made_by({"settings": encoder.options}, **more)}


class Own:
    """In place of an encoder, for `OwnVectors`."""

    def __init__(self) -> None:
        self.fingerprint, self.name, self.graph, self.dimension = OWN, "", None, 0
        self.options: dict[str, Any] = {}


class OwnVectors(DensePart):
    """The vectors that documents have themselves; no encoder is loaded or named."""

    encoder = ""

    def __init__(self, params: Any) -> None:
        super().__init__(Own(), params)
        self._mark = uuid.uuid4().hex  # nothing is taken from an interrupted build, whose vectors may be others
        self._digest = hashlib.sha256()

    def add(self, documents: Sequence[Document]) -> None:
        super().add(documents)
        with np.load(self._files[-1], allow_pickle=False) as block:
            self._digest.update(block["vectors"].astype(self.params.dtype).tobytes())
        self.marks = OWN, self.params.dtype, self._digest.hexdigest()[:16]

    def encoded(self, documents: Sequence[Document]) -> Block:
        """The vectors of documents, the first ones perhaps of `_old`; InputError: a missing one, another length."""
        first = self._count - len(documents)
        old = np.arange(first, first if self._old is None else max(first, len(self._old.docids)))
        given = [*(self._old.fetch(old) if len(old) else ()), *(document.vector for document in documents[len(old) :])]
        for document, vector in zip(documents, given, strict=True):
            expected = self._encoder.dimension or (0 if vector is None else len(vector))
            if vector is None or len(vector) != expected:
                raise InputError(
                    f"{document.where or f'document {document.docid}'}: "
                    f"{'no vector' if vector is None else f'a vector of {len(vector)} numbers'}; expected "
                    f"{expected or 'some'} numbers, as all documents have"
                )
            self._encoder.dimension = expected
        return self.checked(documents, np.array(given, dtype=np.float32))

    def taken(self, rows: np.ndarray, texts: list[str]) -> Block:
        self._encoder.dimension = self._old.dimension
        return super().taken(rows, texts)

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        about = super().write(folder, corpus, count)
        return {"dimension": about["dimension"], "dtype": about["dtype"], "vectors": OWN}


def documents_of_vectors(path: Path) -> Iterator[Document]:
    """The documents of a matrix with ids, or of an index folder: vectors without texts; errors as `open_vectors`."""
    source = open_vectors(path)
    for start in range(0, len(source.docids), BLOCK):
        docids = source.docids[start : start + BLOCK]
        for docid, vector in zip(docids, source.fetch(np.arange(start, start + len(docids))), strict=True):
            yield Document(docid, "", vector=vector)
