"""The part `dense`: vectors of documents, as a Faiss folder or a matrix."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import fingerprint
from rnnreranker.base.settings import setting
from rnnreranker.data.document import Document
from rnnreranker.encode.params import EncoderParams
from rnnreranker.parts.base import BLOCK, Part
from rnnreranker.parts.encoded import EncodedPart, PartByEncoder
from rnnreranker.parts.vectors import VectorSource, open_vectors
from rnnreranker.parts.vectors.npy_files import write_array, write_header

if TYPE_CHECKING:
    from rnnreranker.encode.base import TextEncoder
    from rnnreranker.encode.dense import Encoder

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
    """One vector a document.

    Args:
        encoder: turns texts into vectors.
        dtype: "float32" = Faiss folder; "float16" = `vectors.npy`, half the size, cosines change by less than 1e-3.
    """

    name, gives, gives_queries, rank = "dense", "vectors", "query vectors", 0
    Params: ClassVar[type[settings.Params]] = DenseParams
    OfEncoder = EncoderParams
    encoder = "encoder"
    aliases = ("vectors",)
    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers", "onnxruntime", "faiss-cpu")
    blocks, ending = "vectors", ".npy"
    _old: VectorSource | None
    _dtype: str

    @classmethod
    def encoders(cls) -> type[TextEncoder]:
        from rnnreranker.encode.dense import Encoder

        return Encoder

    @classmethod
    def make(cls, params: Any, beside: Mapping[str, Any]) -> Part:
        if params.dtype == "float32":  # before hours of encoding
            require("faiss", "writing a dense index", "faiss-cpu")
        return OwnVectors(params.dtype) if params.encoder == OWN else cls(cls.opened_encoder(params), params.dtype)

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

    def __init__(self, encoder: Encoder, dtype: Literal["float32", "float16"] = "float32") -> None:
        super().__init__(encoder, DenseParams(dtype=dtype))
        self._dtype, self.dimension = dtype, encoder.dimension

    @property
    def options(self) -> dict[str, Any]:
        return dict(self._encoder.options)

    def begin(self, texts: list[str]) -> None:
        super().begin(texts)
        if self._encoder.graph is not None and (self.of_documents.graph is not None or self._computed):
            self.marks = (*self.marks, "graph")

    def encoded(self, texts: list[str]) -> np.ndarray:
        options: dict[str, Any] = {"threads": self._threads, "what": "documents", "progress": True}
        vectors: np.ndarray = self.of_documents.encode(texts, **options)
        return vectors

    def taken(self, rows: np.ndarray, texts: list[str]) -> np.ndarray:
        assert self._old is not None
        return self._old.fetch(rows)

    def save(self, stream: IO[bytes], block: np.ndarray) -> None:
        write_array(stream, block)

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """Write `index` or `vectors.npy`.

        `cosine`: the lowest to the float32 vectors of the model, unless the model computed them.
        """
        self.write_vectors(folder, count)
        encoder, more = self._encoder, dict[str, Any]()
        if encoder.graph is not None:
            more["graph"] = {"key": encoder.graph.folder.name, "content": encoder.graph.content}
            more["cosine"] = encoder.graph.about["cosine"]
        described = self.made_by({"settings": encoder.options}, **more)
        return {"dimension": self.dimension, "dtype": self._dtype, "encoder": described}

    def write_vectors(self, folder: Path, count: int) -> None:
        flat = self._dtype == "float32"
        with open(folder / ("index" if flat else "vectors.npy"), "wb") as stream:
            if flat:
                faiss = require("faiss", "writing a dense index", "faiss-cpu")
                header = bytearray(faiss.serialize_index(faiss.IndexFlatIP(self.dimension)).tobytes())
                header[8:16] = count.to_bytes(8, "little")  # the number of vectors
                header[-8:] = (count * self.dimension).to_bytes(8, "little")  # and of the floats that follow
                stream.write(header)
            else:
                write_header(stream, "<f2", (count, self.dimension))
            for file in self._files:
                vectors = np.load(file, allow_pickle=False)
                stream.write(vectors.astype("<f4" if flat else "<f2", copy=False).tobytes())


class OwnVectors(DensePart):
    """The vectors that documents have themselves; no encoder is loaded or named."""

    encoder = ""
    packages = ("faiss-cpu",)

    def __init__(self, dtype: str = "float32") -> None:
        EncodedPart.__init__(self, OWN)
        self._dtype, self.dimension = dtype, 0
        self._digest = hashlib.sha256()

    @property
    def marks(self) -> tuple[Any, ...]:  # type: ignore[override]
        return OWN, self._dtype, self._digest.hexdigest()[:16]

    def extend(self, index: Path) -> None:
        self._old = open_vectors(index)
        self.dimension = self._old.dimension

    def add(self, documents: Sequence[Document]) -> None:
        """Take the vectors of documents; InputError: a missing one, or another length (with file:line)."""
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
        self.write_vectors(folder, count)
        return {"dimension": self.dimension, "dtype": self._dtype, "vectors": OWN}


def documents_of_vectors(path: Path) -> Iterator[Document]:
    """The documents of a matrix with ids, or of an index folder: vectors without texts; errors as `open_vectors`."""
    source = open_vectors(path)
    for start in range(0, len(source.docids), BLOCK):
        docids = source.docids[start : start + BLOCK]
        for docid, vector in zip(docids, source.fetch(np.arange(start, start + len(docids))), strict=True):
            yield Document(docid, "", vector=vector)
