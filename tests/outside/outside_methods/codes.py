"""A part of binary codes, made of the vectors of an index, and a retriever that compares them by Hamming distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker import Run, open_vectors
from rnnreranker.plugins import Params, Part, Retriever, setting


@dataclass(frozen=True)
class CodesParams(Params):
    """Settings of Codes."""

    bits: int = setting(64, "bits of a code: signs of products with drawn directions", at_least=8)


class CodeSource:
    """The codes of documents, docids, and the directions that vectors are multiplied with."""

    def __init__(self, folder: Path) -> None:
        self.codes = np.load(folder / "codes.npy", mmap_mode="r")  # (n, bits / 8) uint8
        self.directions = np.load(folder / "directions.npy")  # (d, bits) float32
        self.docids = (folder / "docids.txt").read_text(encoding="utf-8").split("\n")[:-1]

    def code(self, vectors: np.ndarray) -> np.ndarray:
        """(n, bits / 8) uint8."""
        return np.packbits(vectors @ self.directions > 0, axis=1)


class Codes(Part):
    """A bit for each of some drawn directions: whether a document's vector points there."""

    name = "codes"
    Params = CodesParams
    gives = "codes"
    made_of = ("dense",)
    automatic = False

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> CodeSource:
        """See `Part`."""
        return CodeSource(at / "codes")

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """The folder `codes`, from the vectors beside the texts."""
        vectors, own = open_vectors(corpus.parent), folder / "codes"
        own.mkdir()
        directions = np.random.default_rng(0).standard_normal((vectors.dimension, self.params.bits), dtype=np.float32)
        np.save(own / "directions.npy", directions)
        (own / "docids.txt").write_text("".join(f"{docid}\n" for docid in vectors.docids), encoding="utf-8")
        np.save(own / "codes.npy", np.packbits(vectors.fetch(np.arange(count)) @ directions > 0, axis=1))
        return {"settings": self.params.to_dict(), "of": "dense"}


class Hamming(Retriever):
    """Scores are minus the number of bits in which the codes of query and document differ."""

    name = "hamming"
    needs = frozenset({"topics", "query vectors", "codes"})

    def retrieve(self, hits: int) -> Run:
        """The documents that differ least."""
        source, queries = self.inputs.codes, self.inputs.query_vectors
        ranked = {}
        for qid, code in zip(queries.qids, source.code(queries.vectors), strict=True):
            bits = np.unpackbits(source.codes ^ code, axis=1).sum(axis=1, dtype=np.int64)
            ranked[qid] = dict(zip(source.docids, (-bits).astype(float).tolist(), strict=True))
        return Run.from_dict(ranked).head(hits)
