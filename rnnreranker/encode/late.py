"""Texts to a vector for every token: late-interaction encoders, run by sentence-transformers' MultiVectorEncoder."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from rnnreranker.encode.in_batches import compute_batches
from rnnreranker.encode.late_base import late_base
from rnnreranker.encode.model_folder import ModelFolder, content_of, find_model, known_model
from rnnreranker.encode.params import LateEncoderParams
from rnnreranker.encode.vocabulary import tokenizer_in
from rnnreranker.errors import InputError, UnavailableError, require
from rnnreranker.files import fingerprint
from rnnreranker.files.json_files import read_json

KIND = "late-encoder"  # of method
BATCH_TOKENS = 1024  # padded tokens of a batch: what a core's caches like best
STANFORD = "HF_ColBERT"  # the architecture that Stanford's checkpoints name
MODEL_TYPES = ("MultiVectorEncoder", "ColBERT")  # of sentence-transformers and of PyLate
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
        package = require("sentence_transformers", "late interaction", "'rnnreranker[late]'")
        transformers = require("transformers", "late interaction", "transformers")
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self._model = package.MultiVectorEncoder(str(folder.path), device="cpu", local_files_only=True).eval()
        first = self._model[0]
        limit = int(self._model.max_seq_length or 512)
        expansion = getattr(first, "query_expansion", None)
        own = (expansion or {}).get("length") or getattr(first, "query_length", None) or limit
        self.query_length = int(params.query_length or min(own, limit))
        own = getattr(first, "document_length", None) or limit
        self.document_length = int(params.document_length or min(own, limit))
        for name, length in (("query_length", self.query_length), ("document_length", self.document_length)):
            if length > limit:
                raise InputError(f"{name}={length}: {folder.path} takes at most {limit} tokens")
        first.query_length, first.document_length = None, self.document_length
        if expansion:
            first.query_expansion = {**expansion, "length": self.query_length}
        else:
            first.query_length = self.query_length
        self.expands = bool(expansion)
        self._prompts = {
            what: self._model._resolve_prompt(None, what if what in self._model.prompts else None) or ""
            for what in ("query", "document")
        }
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

    def encode(
        self, texts: Sequence[str], what: Literal["query", "document"], *, threads: int | None = None
    ) -> TokenVectors:
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

    def count_cut(self, texts: Sequence[str], what: Literal["query", "document"]) -> int:
        """How many of the texts are longer than the model reads, as `encode` counts them."""
        limit = self.query_length if what == "query" else self.document_length
        return sum(length > limit for length in self._lengths([text for text in texts if text.strip()], what))

    def count_tokens(self, texts: Sequence[str], what: Literal["query", "document"]) -> int:
        """How many tokens the texts have at most, those that are skipped too."""
        limit = self.query_length if what == "query" else self.document_length
        return sum(min(length, limit) for length in self._lengths([text for text in texts if text.strip()], what))

    def _lengths(self, texts: list[str], what: str) -> list[int]:
        """The number of tokens of each text with its prompt, uncut."""
        if not texts:
            return []
        with self._tokenizing:
            found = self._model.tokenizer([self._prompts[what] + text for text in texts], **PLAIN)
        return [len(tokens) for tokens in found["input_ids"]]

    def _forward(self, batch: list[str], what: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """Vectors (t, d) float32 and numbers (t,) int32 of the tokens of each text of a batch."""
        import torch

        with torch.inference_mode():
            with self._tokenizing:
                features = self._model.preprocess(batch, prompt=self._prompts[what] or None, task=what)
            ids = features["input_ids"]
            found = self._model(features, task=what)
            vectors, mask = found["token_embeddings"].float().numpy(), found["attention_mask"].bool().numpy()
        return [(vectors[row][real], own[real]) for row, (real, own) in enumerate(zip(mask, _int32(ids), strict=True))]


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
    folder = _found(name)
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
    return content_of(_found(name).path)


def special_tokens(name: str) -> np.ndarray:
    """(S,) int32, ascending: the numbers of the tokens of a late-interaction encoder that stand for no text.

    Special ones, as [CLS], those that are put in beside the vocabulary, as marks of queries and documents are, and
    those that are there to be used so ([unused0], …). No weights are loaded.

    Raises:
        InputError, UnavailableError: as `load_late_encoder`.
    """
    tokenizer = tokenizer_in(_found(name).path)
    unused = (number for token, number in tokenizer.get_vocab().items() if "[unused" in token)
    return np.unique([*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder, *unused]).astype(np.int32)


def _found(name: str) -> ModelFolder:
    """The files of a model, which are looked at: another model would get a random projection."""
    base = getattr(known_model(name, KIND), "base", "")
    folder = late_base(name, base) if base else find_model(name, KIND)
    again = "get the model again"
    said: list[Any] = []
    for file, key in (("config_sentence_transformers.json", "model_type"), ("config.json", "architectures")):
        if (folder.path / file).is_file():
            config = read_json(folder.path / file, "settings file of the model", again)
            value = config.get(key) if isinstance(config, dict) else None
            said += value if isinstance(value, list) else [value]
    if not {STANFORD, *MODEL_TYPES} & {str(kind) for kind in said}:
        shown = " and a ".join(str(kind) for kind in itertools.filterfalse(lambda kind: kind is None, said))
        raise InputError(
            f"{folder.path}: a {shown or 'model of no kind'}; expected a late-interaction encoder ({MODEL_TYPES[0]} of "
            f"sentence-transformers, or {STANFORD}); a dense model is for --encoder"
        )
    return folder
