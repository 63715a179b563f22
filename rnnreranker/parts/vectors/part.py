"""The part `dense`: vectors of documents, as a Faiss folder or a matrix."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import fingerprint
from rnnreranker.base.settings import setting
from rnnreranker.data.document import Document
from rnnreranker.encode.params import EncoderParams
from rnnreranker.parts.base import BLOCK, Part
from rnnreranker.parts.encoded import Block, EncodedPart, PartByEncoder
from rnnreranker.parts.vectors import VectorSource, open_vectors
from rnnreranker.parts.vectors.npy_files import put_arrays, write_header

if TYPE_CHECKING:
    from rnnreranker.encode.kinds import TextEncoder

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


class DensePart(PartByEncoder):
    """One vector a document: float32 = a Faiss folder; float16 = `vectors.npy`, half the size, cosines change by less
    than 1e-3.
    """

    name, gives, gives_queries, rank = "dense", "vectors", "query vectors", 0
    Params: ClassVar[type[settings.Params]] = DenseParams
    OfEncoder, encoder, automatic = EncoderParams, "encoder", True
    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers", "onnxruntime", "faiss-cpu")

    @classmethod
    def encoders(cls) -> type[TextEncoder]:
        from rnnreranker.encode.kinds import Encoder

        return Encoder

    @classmethod
    def make(cls, params: Any, beside: Mapping[str, Any]) -> Part:
        if params.dtype == "float32":  # before hours of encoding
            require("faiss", "writing a dense index", "faiss-cpu")
        return OwnVectors(params) if params.encoder == OWN else super().make(params, beside)

    @classmethod
    def inputs(cls, params: Any) -> str:
        return fingerprint(OWN, params.dtype) if params.encoder == OWN else super().inputs(params)

    @classmethod
    def params_of(cls, described: Mapping[str, Any]) -> DenseParams:
        form = OWN if described.get("vectors") == OWN else cls.form_of(described)
        return DenseParams(form, described.get("dtype", "float32"))

    @classmethod
    def at(cls, path: Path) -> Path | None:
        return path if path.is_file() or (path / "index").is_file() or any(path.glob("*.npy")) else None

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> VectorSource:
        return open_vectors(at)

    @property
    def options(self) -> dict[str, Any]:
        return dict(self._encoder.options)

    def mark_of(self, texts: list[str]) -> str:
        mark = super().mark_of(texts)
        if self._encoder.graph is not None and (self.of_documents.graph is not None or self._computed):
            self.marks = self._encoder.fingerprint, self._params.kept, "graph"
        return mark

    def encoded(self, texts: list[str]) -> Block:
        options: dict[str, Any] = {"threads": self._threads, "what": "documents", "progress": True}
        return {"vectors": self.of_documents.encode(texts, **options)}

    def taken(self, rows: np.ndarray, texts: list[str]) -> Block:
        return {"vectors": self._old.fetch(rows)}

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """Write `index` or `vectors.npy`.

        `cosine`: the lowest to the float32 vectors of the model, unless the model computed them.
        """
        about = self.write_vectors(folder, count, self._encoder.dimension)
        encoder, more = self._encoder, dict[str, Any]()
        if encoder.graph is not None:
            more["graph"] = {"key": encoder.graph.folder.name, "content": encoder.graph.content}
            more["cosine"] = encoder.graph.about["cosine"]
        return {**about, "encoder": self.made_by({"settings": encoder.options}, **more)}

    def write_vectors(self, folder: Path, count: int, dimension: int) -> dict[str, Any]:
        flat = self._params.dtype == "float32"
        with open(folder / ("index" if flat else "vectors.npy"), "wb") as stream:
            if flat:
                faiss = require("faiss", "writing a dense index", "faiss-cpu")
                header = bytearray(faiss.serialize_index(faiss.IndexFlatIP(dimension)).tobytes())
                header[8:16] = count.to_bytes(8, "little")  # the number of vectors
                header[-8:] = (count * dimension).to_bytes(8, "little")  # and of the floats that follow
                stream.write(header)
            else:
                write_header(stream, "<f2", (count, dimension))
            for block in self.stored():
                stream.write(block["vectors"].astype("<f4" if flat else "<f2", copy=False).tobytes())
        return {"dimension": dimension, "dtype": self._params.dtype}


class OwnVectors(DensePart):
    """The vectors that documents have themselves; no encoder is loaded or named."""

    encoder = ""
    packages = ("faiss-cpu",)

    def __init__(self, params: Any) -> None:
        EncodedPart.__init__(self, OWN)
        self._params, self.dimension = params, 0
        self._digest = hashlib.sha256()

    @property
    def marks(self) -> tuple[Any, ...]:  # type: ignore[override]
        return OWN, self._params.dtype, self._digest.hexdigest()[:16]

    def extend(self, index: Path) -> None:
        self._old = open_vectors(index)
        self.dimension = self._old.dimension

    def add(self, documents: Sequence[Document]) -> None:
        """Take the vectors of documents; InputError: a missing one, or another length (with file:line)."""
        rows = np.arange(self._count, self._count + len(documents))
        old = rows[rows < (0 if self._old is None else len(self._old.docids))]
        given = [*(self._old.fetch(old) if len(old) else ()), *(document.vector for document in documents[len(old) :])]
        for document, vector in zip(documents, given, strict=True):
            if vector is None or len(vector) != (self.dimension or len(vector)):
                has = "no vector" if vector is None else f"a vector of {len(vector)} numbers"
                raise InputError(
                    f"{document.where or f'document {document.docid}'}: {has}; expected {self.dimension or 'some'} "
                    "numbers, as all documents have"
                )
            self.dimension = len(vector)
        vectors = np.array(given, dtype=np.float32)
        self._digest.update(vectors.tobytes())
        self._count += len(documents)
        self._files.append(self._folder / f"{len(self._files):06d}.npz")
        put_arrays(self._files[-1], {"vectors": vectors})

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        return {**self.write_vectors(folder, count, self.dimension), "vectors": OWN}


def documents_of_vectors(path: Path) -> Iterator[Document]:
    """The documents of a matrix with ids, or of an index folder: vectors without texts; errors as `open_vectors`."""
    source = open_vectors(path)
    for start in range(0, len(source.docids), BLOCK):
        docids = source.docids[start : start + BLOCK]
        for docid, vector in zip(docids, source.fetch(np.arange(start, start + len(docids))), strict=True):
            yield Document(docid, "", vector=vector)
