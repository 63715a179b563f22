"""Texts to a vector for every token: late-interaction encoders."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.encode.base import TextEncoder
from rnnreranker.encode.graphs.store import KeptGraph
from rnnreranker.encode.late.folder import KIND, cut_late, late_folder
from rnnreranker.encode.model_folder import ModelFolder, TextKind, tokenizer_in
from rnnreranker.encode.params import LateEncoderParams


class TokenVectors(NamedTuple):
    """The vectors of the tokens of n texts, one text after the other.

    vectors: (T, d) float32; offsets: (n + 1,) int64, text i has vectors[offsets[i]:offsets[i + 1]]; ids: (T,) int32,
    the tokens' numbers in the vocabulary; cut: how many of the texts were cut.
    """

    vectors: np.ndarray
    offsets: np.ndarray
    ids: np.ndarray
    cut: int


class LateEncoder(TextEncoder):
    """A late-interaction encoder: of sentence-transformers (MultiVectorEncoder), of PyLate, or Stanford's ColBERT.

    Which tokens have a vector, and which, the model's modules say. With ColBERT's: of a document the tokens of the text
    with the special ones, without punctuation; of a query as many as `query_length`, [MASK] standing for those that it
    lacks, to which the transformer does not attend. A text without anything but white space has none.

    Attributes:
        dimension: of a token's vector.
        query_length, document_length: tokens, at which texts are cut.
        expands: whether queries are filled up to `query_length`.
    """

    KIND: ClassVar[str] = KIND
    Params: ClassVar[type[settings.Params]] = LateEncoderParams
    what: ClassVar[str] = "a late-interaction encoder"
    graph_kind: ClassVar[str] = "late"
    arrays: ClassVar[frozenset[str]] = frozenset({"vectors", "offsets"})

    def __init__(
        self, folder: ModelFolder, params: LateEncoderParams, model: Any, graph: KeptGraph | None = None
    ) -> None:
        super().__init__(folder, params, model, graph)
        lengths = self.query_length, self.document_length = cut_late(model, params, folder.path)
        self.dimension, self.expands = int(model.about["dimension"]), model.about["expansion"] is not None
        self.fingerprint = fingerprint(KIND, self.digest, [*lengths])

    @classmethod
    def files(cls, name: str) -> ModelFolder:
        return late_folder(name)

    def encode_documents(self, texts: Sequence[str], *, threads: int | None = None) -> TokenVectors:
        """The tokens of `encode`, of documents."""
        return self.encode(texts, "document", threads=threads)

    def encode_queries(self, texts: Sequence[str], *, threads: int | None = None) -> TokenVectors:
        """The tokens of `encode`, of queries."""
        return self.encode(texts, "query", threads=threads)

    def encode(self, texts: Sequence[str], what: TextKind, *, threads: int | None = None) -> TokenVectors:
        """The vectors of texts' tokens, in their order.

        Args:
            texts: any strings, empty ones too; `encode_texts` says what they do to each other.
            what: which prompt is put before each text, at which length it is cut and whether it is expanded.
            threads: None = one per core.

        Raises:
            InputError: a text that is not a string, vectors that are NaN or infinite.
        """
        computed = self._compute(texts, what, threads=threads, blank=False)
        none = np.empty((0, self.dimension), dtype=np.float32), np.empty(0, dtype=np.int32)
        rows = [*itertools.chain.from_iterable(computed.parts), none]
        taken = [rows[row] for row in computed.rows]
        offsets = np.cumsum([0, *(len(ids) for _, ids in taken)], dtype=np.int64)
        vectors, ids = (np.concatenate(parts) for parts in zip(none, *taken, strict=True))
        if (wrong := np.flatnonzero(~np.isfinite(vectors).all(axis=1))).size:
            text = texts[int(np.searchsorted(offsets, wrong[0], side="right")) - 1]
            raise InputError(f"{self.name}: a token's vector of {text[:60]!r} has NaN or infinite values")
        return TokenVectors(vectors, offsets, ids, computed.cut)

    def count_tokens(self, texts: Sequence[str], what: TextKind) -> int:
        """How many tokens the texts have at most, those that are skipped too."""
        return sum(one.length for one in self._reader(what)([text for text in texts if text.strip()]))

    def compared(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [self.encode_queries(texts).vectors, self.rows(texts)]

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of the tokens, one text after the other."""
        return self.encode_documents(texts).vectors

    def query_arrays(self, texts: Sequence[str], threads: int | None) -> dict[str, np.ndarray]:
        """The vectors (T, d) float32 of the tokens of n queries, and (n + 1,) int64 where those of each begin."""
        encoded = self.encode_queries(texts, threads=threads)
        return {"vectors": encoded.vectors, "offsets": encoded.offsets}


def special_tokens(name: str) -> np.ndarray:
    """(S,) int32, ascending: the numbers of the tokens of a late-interaction encoder that stand for no text.

    Special ones, as [CLS], those that are put in beside the vocabulary, as marks of queries and documents are, and
    those that are there to be used so ([unused0], …). No weights are loaded.

    Raises:
        InputError, UnavailableError: as `LateEncoder.load`.
    """
    tokenizer = tokenizer_in(late_folder(name).path)
    unused = (number for token, number in tokenizer.get_vocab().items() if "[unused" in token)
    return np.unique([*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder, *unused]).astype(np.int32)
