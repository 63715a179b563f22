"""Impacts: the weights that an encoder gives the words of documents, stored and searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.command import cores, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import setting
from rnnreranker.encode.params import SparseEncoderParams
from rnnreranker.parts.encoded import Block, PartByEncoder
from rnnreranker.parts.postings import Postings, arrays_in, best_products, matrix_of, write_postings

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from rnnreranker.encode.kinds import TextEncoder

LARGEST = 2**16 - 1  # whole weight


class QueryImpacts(NamedTuple):
    """The weights of Q queries for V words, times a factor.

    Attributes:
        numbers: (Q, V) CSR float32, weight times `factor`; factor: above 0, 1 for exact weights and counts.
    """

    numbers: csr_matrix
    factor: float = 1.0

    @property
    def weights(self) -> csr_matrix:
        return divided(self.numbers, self.factor)


def divided(numbers: csr_matrix, factor: float) -> csr_matrix:
    """(n, V) CSR float32: numbers divided by a factor; unchanged for factor 1."""
    from scipy.sparse import csr_matrix

    if factor == 1.0:
        return numbers
    weights = (numbers.data.astype(np.float64) / factor).astype(np.float32)
    return csr_matrix((weights, numbers.indices, numbers.indptr), numbers.shape)


def whole(weights: csr_matrix, factor: float, of: str = "documents") -> csr_matrix:
    """(n, V) CSR of whole numbers as float32: weights times the factor, rounded half to even, without zeros.

    Args:
        weights: (n, V) CSR, not negative; of: whose weights, for the error.

    Raises:
        InputError: a product beyond 16 bits.
    """
    numbers = weights.astype(np.float64)
    numbers.data = np.rint(numbers.data * factor)
    if numbers.nnz and numbers.data.max() > LARGEST:
        largest = float(weights.data.max())
        raise InputError(
            f"{of}: a weight of {largest:g} times the factor {factor:g} is beyond {LARGEST}, what 16 bits hold; "
            f"give impact:factor={LARGEST / largest:.2g} or less, or impact:weights=float"
        )
    numbers.eliminate_zeros()
    return numbers.astype(np.float32)


class ImpactSource(Postings):
    """The weights of words in the documents of an index, in the folder `impacts`.

    Attributes:
        vocabulary: number of words; words: fingerprint of the words in order.
        factor: by which weights were multiplied before rounding; None = exact weights.
        encoder: name and settings, for `SparseEncoder.load(name, **settings)`.
    """

    part, files = "impact", "impacts"

    def _take(self, described: Mapping[str, Any]) -> None:
        self.vocabulary = self.words_count = int(described["vocabulary"])
        self.words = str(described["words"])
        self.factor = None if described["factor"] is None else float(described["factor"])
        self.encoder: Mapping[str, Any] = {"name": described["encoder"]["name"], **described["encoder"]}
        self._marks = (self.words,)

    def weights(self, rows: np.ndarray) -> csr_matrix:
        """(n, V) float32 CSR: the weights of rows, divided by the factor."""
        return divided(self.fetch(rows), self.factor or 1.0)

    def search(
        self, queries: QueryImpacts, hits: int, threads: int | None = None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Scores (float64, non-increasing, ties by docid) and rows (int64) of the best documents of every query.

        The score is the inner product of the weights, exact for whole numbers. Documents that share no word with a
        query are left out.

        Args:
            queries: as in `as_stored`; hits: documents a query, at most; threads: None = one per core.

        Raises:
            InputError: queries of another vocabulary.
        """
        numbers = queries.numbers
        if numbers.shape[1] != self.vocabulary:
            raise InputError(
                f"queries have weights of {numbers.shape[1]} words, {self.folder} of {self.vocabulary}; "
                "encode the queries with the encoder that made the index"
            )
        numbers = numbers.astype(np.float64)
        numbers.sort_indices()
        scores, rows = best_products(numbers, self.postings_lists(), hits, self.docid_ranks, threads or cores())
        unit = queries.factor * (self.factor or 1.0)
        return [one / unit for one in scores], rows

    def as_stored(self, weights: csr_matrix) -> QueryImpacts:
        """Weights of queries, (Q, V) CSR, rounded as those of documents; InputError: as `whole`."""
        if self.factor is None:
            return QueryImpacts(weights)
        return QueryImpacts(whole(weights, self.factor, "queries"), self.factor)


def word_use(queries: csr_matrix, document_frequencies: np.ndarray, documents: int) -> dict[str, float]:
    """Mean numbers of words of a query and of a document with a weight, and FLOPS.

    `flops`: Σ_t p_q(t) p_d(t), p(t) the share of queries, or of documents, with a weight for word t (Paria et al.
    2020).

    Args:
        queries: (Q, V) CSR, Q >= 1; document_frequencies: (V,); documents: their number.

    >>> from scipy.sparse import csr_matrix
    >>> word_use(csr_matrix([[1.0, 0.0, 2.0]]), np.array([4, 2, 1]), 4)
    {'query_words': 2.0, 'document_words': 1.75, 'flops': 1.25}
    """
    used = queries.indices[queries.data != 0]
    shares = np.bincount(used, minlength=queries.shape[1]) / queries.shape[0]
    of_documents = document_frequencies / documents
    words = float(shares.sum()), float(of_documents.sum())
    return {"query_words": words[0], "document_words": words[1], "flops": float(shares @ of_documents)}


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


class ImpactPart(PartByEncoder):
    """The weights of words in documents."""

    name, gives, folder, rank = "impact", "impacts", "impacts", 20
    Params, OfEncoder, encoder = ImpactParams, SparseEncoderParams, "sparse-encoder"
    packages = ("torch", "transformers", "sentence-transformers", "onnxruntime", "scipy")

    @classmethod
    def encoders(cls) -> type[TextEncoder]:
        from rnnreranker.encode.kinds import SparseEncoder

        return SparseEncoder

    @classmethod
    def params_of(cls, described: Mapping[str, Any]) -> ImpactParams:
        factor = described.get("factor", 100.0)
        form = cls.form_of(described)
        return ImpactParams(encoder=form, weights="float") if factor is None else ImpactParams("whole", factor, form)

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> ImpactSource:
        return ImpactSource(at, described)

    def encoded(self, texts: list[str]) -> Block:
        weights, cut = self.of_documents.encode(texts, "document", threads=self._threads)
        return {**arrays_in(weights), "cut": cut}

    def taken(self, rows: np.ndarray, texts: list[str]) -> Block:
        """The old weights, which `write` rounds again as they were."""
        return {**arrays_in(self._old.weights(rows)), "cut": self._encoder.count_cut(texts, "document")}

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        """Write the folder `impacts`; returns its description."""
        made_by, exact = self._encoder, self._params.weights == "float"

        def blocks() -> Iterator[csr_matrix]:
            for block in self.stored():
                weights = matrix_of(block, made_by.vocabulary)
                yield weights if exact else whole(weights, self._params.factor)

        documents = write_postings(folder / self.folder, blocks, made_by.vocabulary, exact)
        postings, flops, (cut, said) = int(documents.sum()), float(((documents / count) ** 2).sum()), self.cut()
        say(f"impacts: {postings / count:.1f} words a document, FLOPS of two {flops:.2f}; {said}")
        return {
            "encoder": self.made_by({"settings": {"max_length": made_by.max_length}}),
            "vocabulary": made_by.vocabulary,
            "words": made_by.words,
            "factor": None if exact else self._params.factor,
            "postings": postings,
            "words_a_document": round(postings / count, 4),
            "flops": round(flops, 4),
            "cut": cut,
        }
