"""Vectors of documents, and the layouts they end up in."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from rnnreranker.command import say
from rnnreranker.encode.encoder import Encoder
from rnnreranker.encode.graph_export import write_query_graph
from rnnreranker.encode.model_folder import QUERY_GRAPH
from rnnreranker.encode.transformer import TransformerModel
from rnnreranker.errors import InputError, require
from rnnreranker.index.encoded_part import EncodedPart
from rnnreranker.index.part import check_encoder
from rnnreranker.vectors import VectorSource, open_vectors

DTYPES = ("float32", "float16")


class DensePart(EncodedPart):
    """One vector a document.

    Args:
        encoder: turns texts into vectors.
        dtype: "float32" = Faiss folder; "float16" = `vectors.npy`, half the size, cosines change by less than 1e-3.

    Raises:
        InputError: `dtype` unknown.
    """

    name: ClassVar[str] = "dense"
    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers", "faiss-cpu")
    folder, ending = "vectors", ".npy"
    _old: VectorSource | None

    def __init__(self, encoder: Encoder, dtype: str = "float32") -> None:
        if dtype not in DTYPES:
            raise InputError(f"dtype={dtype}: expected {' or '.join(DTYPES)}")
        super().__init__(encoder.fingerprint)
        self._encoder = encoder
        self._dtype = dtype
        self.dimension = encoder.dimension
        self.marks = (encoder.fingerprint, dtype)

    def extend(self, index: Path) -> None:
        """Take the vectors of blocks of documents that the index has; a block that is new in part is encoded whole.

        Raises:
            InputError: they were made by another encoder.
        """
        check_encoder(index, "dense", self._encoder.fingerprint)
        self._old = open_vectors(index)

    def encoded(self, texts: list[str]) -> np.ndarray:
        """(n, d) float32."""
        return self._encoder.encode(texts, threads=self._threads, what="documents", progress=True)

    def taken(self, rows: np.ndarray, texts: list[str]) -> np.ndarray:
        """(n, d) float32."""
        assert self._old is not None
        return self._old.fetch(rows)

    def save(self, stream: IO[bytes], block: np.ndarray) -> None:
        """As `.npy`."""
        np.save(stream, block)

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """Write `index` or `vectors.npy`, and the encoder as a graph for queries; dimension, dtype and encoder."""
        if self._dtype == "float32":
            self.write_flat(folder / "index", count)
        else:
            self.write_matrix(folder / "vectors.npy", count)
        made_by = self._encoder
        described: dict[str, Any] = {"name": made_by.name, "settings": made_by.options}
        described["fingerprint"] = made_by.fingerprint
        if not (reason := write_query_graph(made_by, folder / QUERY_GRAPH)):
            described["graph"] = True
        elif isinstance(made_by.model, TransformerModel):
            say(f"queries will be encoded by the model itself, which takes seconds to load: {reason}")
        return {"dimension": self.dimension, "dtype": self._dtype, "encoder": described}

    def write_flat(self, path: Path, count: int) -> None:
        """Write a Faiss flat inner-product index of all blocks, without holding it in memory."""
        faiss = require("faiss", "writing a dense index", "faiss-cpu")
        header = bytearray(faiss.serialize_index(faiss.IndexFlatIP(self.dimension)).tobytes())
        header[8:16] = count.to_bytes(8, "little")  # the number of vectors
        header[-8:] = (count * self.dimension).to_bytes(8, "little")  # and of the floats that follow
        with open(path, "wb") as stream:
            stream.write(header)
            self._write(stream, "<f4")

    def write_matrix(self, path: Path, count: int) -> None:
        """Write all blocks as one `.npy` matrix, (n, d) float16."""
        with open(path, "wb") as stream:
            described = {"descr": "<f2", "fortran_order": False, "shape": (count, self.dimension)}
            np.lib.format.write_array_header_1_0(stream, described)
            self._write(stream, "<f2")

    def _write(self, stream: IO[bytes], dtype: str) -> None:
        for file in self._files:
            stream.write(np.load(file, allow_pickle=False).astype(dtype, copy=False).tobytes())
