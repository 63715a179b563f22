"""The weights of words in documents, as the impacts of an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.command import counted, say
from rnnreranker.base.settings import setting
from rnnreranker.encode.params import SparseEncoderParams
from rnnreranker.parts.encoded import CountedPart
from rnnreranker.parts.impacts.source import ImpactSource, whole
from rnnreranker.parts.postings import write_postings

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from rnnreranker.encode.base import TextEncoder
    from rnnreranker.encode.sparse.encoder import Encoded, SparseEncoder


@dataclass(frozen=True)
class ImpactParams(settings.Params):
    """Settings of stored weights, and the encoder that gives them; InputError: values out of range."""

    weights: Literal["whole", "float"] = setting(
        "whole", "stored weights: whole = rounded after times the factor, float = as they are"
    )
    factor: float = setting(100.0, "factor of whole weights before they are rounded", above=0)

    encoder: str = setting(
        "splade-tiny", "a name, a folder or a Hugging Face id, NAME:max_length=256", flag="impact-encoder"
    )

    @property
    def kept(self) -> dict[str, Any]:
        """How the weights are kept."""
        return {"weights": self.weights, "factor": self.factor}


class ImpactPart(CountedPart):
    """The weights of words in documents.

    Args:
        encoder: gives texts the weights of words.
        params: how weights are kept.
    """

    name, gives, folder, rank = "impact", "impacts", "impacts", 20
    Params, OfEncoder, encoder = ImpactParams, SparseEncoderParams, "sparse-encoder"
    aliases = ("splade", "impacts", "sparse")
    packages = ("torch", "transformers", "sentence-transformers", "onnxruntime", "scipy")
    _encoder: SparseEncoder
    _params: ImpactParams
    _old: ImpactSource | None

    @classmethod
    def encoders(cls) -> type[TextEncoder]:
        from rnnreranker.encode.sparse.encoder import SparseEncoder

        return SparseEncoder

    @classmethod
    def params_of(cls, described: Mapping[str, Any]) -> ImpactParams:
        factor = described.get("factor", 100.0)
        form = cls.form_of(described)
        return ImpactParams(encoder=form, weights="float") if factor is None else ImpactParams("whole", factor, form)

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> ImpactSource:
        return ImpactSource(at, described)

    def taken(self, rows: np.ndarray, texts: list[str]) -> Encoded:
        """Weights (n, V) CSR, from before they were rounded to what the index has; and how many texts were cut."""
        from rnnreranker.encode.sparse.encoder import Encoded

        assert self._old is not None
        weights = self._old.weights(rows)  # rounded again as they were
        return Encoded(weights, self._encoder.count_cut(texts, "document"))

    def save(self, stream: IO[bytes], block: Encoded) -> None:
        weights, cut = block
        np.savez(stream, weights=weights.data, terms=weights.indices, offsets=weights.indptr, cut=cut)

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """Write the folder `impacts`; encoder, vocabulary, factor, how many words a document has, and FLOPS.

        FLOPS are those of a document searched with another: the sum over words t of p(t)^2, where p(t) is the share of
        documents with a weight for t; `diagnose` has those of queries.
        """
        made_by, exact = self._encoder, self._params.weights == "float"
        documents = write_postings(folder / self.folder, self._blocks, made_by.vocabulary, exact)
        postings, flops = int(documents.sum()), float(((documents / count) ** 2).sum())
        said = [f"{counted(postings, 'weight')}, {postings / count:.1f} words a document, FLOPS of two {flops:.2f}"]
        say(f"impacts: {'; '.join([*said, *self.lost(made_by.max_length)])}")
        return {
            "encoder": self.made_by(settings={"max_length": made_by.max_length}),
            "vocabulary": made_by.vocabulary,
            "words": made_by.words,
            "factor": None if exact else self._params.factor,
            "postings": postings,
            "words_a_document": round(postings / count, 4),
            "flops": round(flops, 4),
            "cut": self._cut,
        }

    def _blocks(self) -> Iterator[csr_matrix]:
        from scipy.sparse import csr_matrix

        for file in self._files:
            with np.load(file, allow_pickle=False) as block:
                offsets = block["offsets"]
                shape = (len(offsets) - 1, self._encoder.vocabulary)
                weights = csr_matrix((block["weights"], block["terms"], offsets), shape)
            yield weights if self._params.weights == "float" else whole(weights, self._params.factor)
