"""The parts `impact`, the weights that an encoder gives the words of documents, and `terms`, the counts of words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import setting
from rnnreranker.data.document import Document
from rnnreranker.encode.kinds import SparseEncoder
from rnnreranker.encode.params import SparseEncoderParams
from rnnreranker.encode.words.analysis import Analyser, TermParams
from rnnreranker.parts.base import Block, EncodedPart
from rnnreranker.parts.postings.source import (
    VOCABULARY,
    ImpactSource,
    TermSource,
    arrays_in,
    count_words,
    matrix_of,
    whole,
    write_postings,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class ImpactParams(settings.Params):
    """Settings of stored weights and of their encoder; InputError: values out of range."""

    weights: Literal["whole", "float"] = setting(
        "whole", "stored weights: whole = rounded after times the factor, float = as they are"
    )
    factor: float = setting(100.0, "factor of whole weights before they are rounded", above=0)

    encoder: str = setting(
        "splade-tiny", "a name, a folder or a Hugging Face id, NAME:max_length=256", flag="impact-encoder"
    )

    @property
    def kept(self) -> dict[str, Any]:
        return {"weights": self.weights, "factor": self.factor}


class ImpactPart(EncodedPart):
    """The weights of words in documents."""

    name, gives, folder, rank = "impact", "impacts", "impacts", 20
    Params, OfEncoder, encoder = ImpactParams, SparseEncoderParams, "sparse-encoder"
    encoders, source = SparseEncoder, ImpactSource

    def encoded(self, documents: Sequence[Document]) -> Block:
        texts = [document.text for document in documents]
        weights, cut = self.of_documents.encode(texts, "document", threads=self._threads)
        return {**arrays_in(weights), "cut": cut}

    def taken(self, rows: np.ndarray, texts: list[str]) -> Block:
        """The old weights, which `write` rounds again as they were."""
        return {**arrays_in(self._old.weights(rows)), "cut": self._encoder.count_cut(texts, "document")}

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        made_by, exact = self._encoder, self.params.weights == "float"

        def blocks() -> Iterator[csr_matrix]:
            for block in self.stored():
                weights = matrix_of(block, made_by.vocabulary)
                yield weights if exact else whole(weights, self.params.factor)

        documents = write_postings(folder / self.folder, blocks, made_by.vocabulary, exact)
        postings, flops, (cut, said) = int(documents.sum()), float(((documents / count) ** 2).sum()), self.cut()
        say(f"impacts: {postings / count:.1f} words a document, FLOPS of two {flops:.2f}; {said}")
        return {
            "encoder": self.made_by({"settings": {"max_length": made_by.max_length}}),
            "vocabulary": made_by.vocabulary,
            "words": made_by.words,
            "factor": None if exact else self.params.factor,
            "postings": postings,
            "words_a_document": round(postings / count, 4),
            "flops": round(flops, 4),
            "cut": cut,
        }


class TermsPart(EncodedPart):
    """Word counts of all documents, for TF-IDF and BM25 without Java."""

    name, gives, folder, rank = "terms", "terms", "terms", 40
    Params, source = TermParams, TermSource

    @classmethod
    def make(cls, params: TermParams, beside: Mapping[str, Any]) -> TermsPart:
        return cls(Analyser(params), params)

    def encoded(self, documents: Sequence[Document]) -> Block:
        number = defaultdict[str, int]()
        number.default_factory = number.__len__  # numbers new words in their order
        counts = count_words(self._encoder.words([document.text for document in documents]), number)
        return {**arrays_in(counts), "words": _lines(number)}

    def taken(self, rows: np.ndarray, texts: list[str]) -> Block:
        counts = self._old.fetch(rows)
        used, indices = np.unique(counts.indices, return_inverse=True)
        words = [self._old.vocabulary[number] for number in used.tolist()]
        return {**arrays_in(counts), "indices": indices, "words": _lines(words)}

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        def words_of(block: Block) -> list[str]:
            return block["words"].tobytes().decode().split("\n")[:-1]

        words = sorted(set[str]().union(*map(words_of, self.stored())))
        if not words:
            raise InputError(f"no document has a word; expected texts in the language {self.params.language}")
        number, path = {word: rank for rank, word in enumerate(words)}, folder / self.folder

        def blocks() -> Iterator[csr_matrix]:
            for block in self.stored():
                numbers = np.array([number[word] for word in words_of(block)], dtype=np.int32)
                counts = matrix_of({**block, "indices": numbers[block["indices"]]}, len(words))
                counts.sort_indices()
                yield counts

        documents = write_postings(path, blocks, len(words), False)
        postings = int(documents.sum())
        (path / VOCABULARY).write_bytes(_lines(words).tobytes())
        say(f"terms: {counted(len(words), 'word')}, {postings / count:.1f} different ones a document")
        return {
            "encoder": {"name": self._encoder.package, "fingerprint": self._encoder.fingerprint},
            "words": len(words),
            "postings": postings,
        }


def _lines(words: Iterable[str]) -> np.ndarray:
    """The bytes of words, one a line."""
    return np.frombuffer("".join(f"{word}\n" for word in words).encode(), np.uint8)
