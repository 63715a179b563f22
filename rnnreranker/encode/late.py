"""Texts to a vector for every token: late-interaction encoders, run by sentence-transformers' MultiVectorEncoder."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnreranker.encode.in_batches import compute_batches
from rnnreranker.encode.late_folder import KIND, late_folder
from rnnreranker.encode.late_model import Side, open_late_model
from rnnreranker.encode.model_folder import ModelFolder, content_of
from rnnreranker.encode.params import LateEncoderParams
from rnnreranker.encode.vocabulary import tokenizer_in
from rnnreranker.errors import InputError, UnavailableError
from rnnreranker.files import fingerprint

BATCH_TOKENS = 1024  # padded tokens of a batch: what a core's caches like best
PLAIN = {"truncation": False, "padding": False, "return_attention_mask": False, "return_token_type_ids": False}


class TokenVectors(NamedTuple):
    """The vectors of the tokens of n texts, one text after the other.

    vectors: (T, d) float32; offsets: (n + 1,) int64, text i has vectors[offsets[i]:offsets[i + 1]]; ids: (T,) int32,
    the tokens' numbers in the vocabulary; cut: how many of the texts were cut.
    """

    vectors: np.ndarray
    offsets: np.ndarray
    ids: np.ndarray
    cut: int


class LateEncoder:
    """A late-interaction encoder of texts; made by `load_late_encoder`.

    Which tokens have a vector, and which, the model's modules say. With ColBERT's: of a document the tokens of the text
    with the special ones, without punctuation; of a query as many as `query_length`, [MASK] standing for those that it
    lacks, to which the transformer does not attend. A text without anything but white space has none.

    Attributes:
        name: hub id or path; dimension: of a token's vector.
        query_length, document_length: tokens, at which texts are cut.
        digest: of the model's files, as `late_digest_of` has it.
        fingerprint: of everything that the vectors depend on besides the texts.

    Args:
        folder: the model's files.
        params: what the caller says of it.
    """

    def __init__(self, folder: ModelFolder, params: LateEncoderParams) -> None:
        self._model = open_late_model(folder.path, params)
        self.query_length, self.document_length = self._model.query_length, self._model.document_length
        self.expands = self._model.expands
        self._tokenizing = threading.Lock()  # a tokenizer keeps its settings in itself: one thread at a time
        self.name = folder.name
        self.params = params
        self.dimension = int(self._forward(["a"], "document")[0][0].shape[1])
        lengths = [self.query_length, self.document_length]
        self.digest = content_of(folder.path)
        self.fingerprint = fingerprint(KIND, self.digest, lengths)

    def encode_documents(self, texts: Sequence[str], *, threads: int | None = None) -> TokenVectors:
        """The tokens of `encode`, of documents."""
        return self.encode(texts, "document", threads=threads)

    def encode_queries(self, texts: Sequence[str], *, threads: int | None = None) -> TokenVectors:
        """The tokens of `encode`, of queries."""
        return self.encode(texts, "query", threads=threads)

    def encode(self, texts: Sequence[str], what: Side, *, threads: int | None = None) -> TokenVectors:
        """The vectors of texts' tokens, in their order.

        Texts are put into batches by length and content, and every batch is computed by one thread: neither the order
        of the texts nor the number of threads changes a bit. (Other texts in the list may change the last bits.)

        Args:
            texts: any strings, empty ones too.
            what: which prompt is put before each text, at which length it is cut and whether it is expanded.
            threads: None = one per core.

        Raises:
            InputError: a text that is not a string, vectors that are NaN or infinite.
        """
        for place, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(f"text {place} is a {type(text).__name__}; expected a string")
        distinct = sorted({text for text in texts if text.strip()})
        limit = self.query_length if what == "query" else self.document_length
        uncut = self._lengths(distinct, what)
        none = np.empty((0, self.dimension), dtype=np.float32), np.empty(0, dtype=np.int32)
        found = {"": none}

        def compute(batch: list[int]) -> None:
            own = [distinct[place] for place in batch]
            found.update(zip(own, self._forward(own, what), strict=True))

        lengths = [limit if what == "query" and self.expands else min(length, limit) for length in uncut]
        compute_batches(compute, lengths, BATCH_TOKENS, threads)
        for text, (vectors, _) in found.items():
            if not np.isfinite(vectors).all():
                raise InputError(f"{self.name}: a token's vector of {text[:60]!r} has NaN or infinite values")
        taken = [found[text if text.strip() else ""] for text in texts]
        offsets = np.cumsum([0, *(len(ids) for _, ids in taken)], dtype=np.int64)
        longer = {text for text, length in zip(distinct, uncut, strict=True) if length > limit}
        vectors, ids = (np.concatenate(parts) for parts in zip(none, *taken, strict=True))
        return TokenVectors(vectors, offsets, ids, sum(text in longer for text in texts))

    def count_cut(self, texts: Sequence[str], what: Side) -> int:
        """How many of the texts are longer than the model reads, as `encode` counts them."""
        limit = self.query_length if what == "query" else self.document_length
        return sum(length > limit for length in self._lengths([text for text in texts if text.strip()], what))

    def count_tokens(self, texts: Sequence[str], what: Side) -> int:
        """How many tokens the texts have at most, those that are skipped too."""
        limit = self.query_length if what == "query" else self.document_length
        return sum(min(length, limit) for length in self._lengths([text for text in texts if text.strip()], what))

    def _lengths(self, texts: list[str], what: Side) -> list[int]:
        """The number of tokens of each text with its prompt, uncut."""
        if not texts:
            return []
        with self._tokenizing:
            prompt = self._model.prompts[what]
            found = self._model.modules.tokenizer([prompt + text for text in texts], **PLAIN)
        return [len(tokens) for tokens in found["input_ids"]]

    def _forward(self, batch: list[str], what: Side) -> list[tuple[np.ndarray, np.ndarray]]:
        """Vectors (t, d) float32 and numbers (t,) int32 of the tokens of each text of a batch."""
        import torch

        with torch.inference_mode():
            with self._tokenizing:
                features = self._model.features(batch, what)
            ids = features["input_ids"]
            tokens, mask = self._model.tokens(features, what)
            vectors, real = tokens.float().numpy(), mask.numpy()
        return [(vectors[row][its], own[its]) for row, (its, own) in enumerate(zip(real, _int32(ids), strict=True))]


def _int32(ids: Any) -> np.ndarray:
    found: np.ndarray = ids.numpy().astype(np.int32)
    return found


def load_late_encoder(name: str, **given: Any) -> LateEncoder:
    """The late-interaction encoder of a name, hub id or folder.

    Args:
        name: "minilm-tokens", "colbert-v2", … (the files of `encode/late_models`), a hub id `org/model`, a folder: as
            sentence-transformers saves a MultiVectorEncoder, of PyLate, or Stanford's checkpoint of ColBERT.
        given: fields of `LateEncoderParams`.

    Raises:
        InputError: no such model, a model that gives no vectors of tokens, lengths beyond the model's.
        UnavailableError: a model that is not installed, or neither in the cache of the hub nor reachable.
    """
    params = LateEncoderParams(**given)
    folder = late_folder(name)
    try:
        return LateEncoder(folder, params)
    except (OSError, ValueError, KeyError, RuntimeError, IndexError, AttributeError) as error:
        if isinstance(error, (InputError, UnavailableError)):
            raise
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(
            f"{folder.path}: cannot be loaded as a late-interaction encoder ({reason}); get it again"
        ) from None


def late_digest_of(name: str) -> str:
    """What tells the model of a name from others, whatever the settings; no weights are loaded.

    Raises:
        InputError, UnavailableError: as `load_late_encoder`.
    """
    return content_of(late_folder(name).path)


def special_tokens(name: str) -> np.ndarray:
    """(S,) int32, ascending: the numbers of the tokens of a late-interaction encoder that stand for no text.

    Special ones, as [CLS], those that are put in beside the vocabulary, as marks of queries and documents are, and
    those that are there to be used so ([unused0], …). No weights are loaded.

    Raises:
        InputError, UnavailableError: as `load_late_encoder`.
    """
    tokenizer = tokenizer_in(late_folder(name).path)
    unused = (number for token, number in tokenizer.get_vocab().items() if "[unused" in token)
    return np.unique([*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder, *unused]).astype(np.int32)
