"""A late-interaction model as sentence-transformers loads it: its lengths, its prompts, texts to vectors of tokens."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnnreranker.base.device import EXACT, put
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.private.sentence_transformers import prompt_of
from rnnreranker.encode.in_batches import CountedText, count_tokens
from rnnreranker.encode.model_settings import TextKind
from rnnreranker.encode.params import LateEncoderParams

if TYPE_CHECKING:
    import torch


class Read(NamedTuple):
    """The tokens of a text: their numbers, which of them the transformer attends to, whether there were more."""

    ids: list[int]
    attention: list[int]
    cut: bool

    @property
    def length(self) -> int:
        """How many there are."""
        return len(self.ids)


@dataclass(frozen=True)
class LateModel:
    """A model with what it does to queries and to documents.

    Attributes:
        modules: sentence-transformers' MultiVectorEncoder.
        query_length, document_length: tokens, at which texts are cut.
        expands: whether queries are filled up to `query_length`.
        prompts: kind → what is put before a text.
        limit: tokens that the transformer takes at most.
    """

    modules: Any
    query_length: int
    document_length: int
    expands: bool
    prompts: Mapping[str, str]
    limit: int
    _tokenizing: threading.Lock = field(default_factory=threading.Lock)  # a tokenizer keeps its settings in itself

    def read(self, texts: Sequence[str], kind: TextKind) -> list[CountedText]:
        """What `vectors` takes of each text; the tokens themselves are taken with those of its batch."""
        if not texts:
            return []
        limit = self.query_length if kind == "query" else self.document_length
        lengths = count_tokens(self.modules.tokenizer, self._tokenizing, [self.prompts[kind] + text for text in texts])
        filled = kind == "query" and self.expands
        return [
            CountedText(text, limit if filled else min(length, limit), length > limit)
            for text, length in zip(texts, lengths, strict=True)
        ]

    def vectors(self, batch: Sequence[CountedText], kind: TextKind) -> list[tuple[np.ndarray, np.ndarray]]:
        """Vectors (t, d) float32 and numbers (t,) int32 of the tokens of each text of a batch that count."""
        import torch

        with torch.inference_mode():
            with self._tokenizing:
                features = self.features([one.text for one in batch], kind)
            ids = features["input_ids"].numpy().astype(np.int32)
            there = {name: value.to(self.modules.device) for name, value in features.items()}
            tokens, mask = self.tokens(there, kind)
            vectors, real = tokens.float().cpu().numpy(), mask.cpu().numpy()
        return [(vectors[row][its], own[its]) for row, (its, own) in enumerate(zip(real, ids, strict=True))]

    def features(self, texts: Sequence[str], kind: TextKind) -> dict[str, torch.Tensor]:
        """The tensors (n, t) of texts that `tokens` takes, of the longest of them."""
        import torch

        features = self.modules.preprocess(list(texts), prompt=self.prompts[kind] or None, task=kind)
        return {name: value for name, value in features.items() if torch.is_tensor(value) and value.dim() == 2}

    def tokens(self, features: Mapping[str, torch.Tensor], kind: TextKind) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, t, d): a vector for every token, and (n, t) bool: which of them count."""
        outputs = self.modules(dict(features), task=kind)
        return outputs["token_embeddings"], outputs["attention_mask"].bool()


def open_late_model(folder: Path, params: LateEncoderParams, device: str = "cpu", dtype: str = EXACT) -> LateModel:
    """The model of a folder, in evaluation mode, with its lengths set in its modules: it is saved with them.

    Args:
        folder: of a late-interaction encoder, see `late_folder`.
        params: lengths that are not the model's own.
        device: of torch; dtype: of the weights.

    Raises:
        InputError: lengths beyond the model's.
        MissingDependencyError: without sentence-transformers. Its own errors of files that it cannot load pass.
    """
    package = require("sentence_transformers", "late interaction", "'rnnreranker[late]'")
    transformers = require("transformers", "late interaction", "transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    modules = put(package.MultiVectorEncoder(str(folder), device=device, local_files_only=True).eval(), device, dtype)
    first = modules[0]
    limit = int(modules.max_seq_length or 512)
    expansion = getattr(first, "query_expansion", None)
    own_query = (expansion or {}).get("length") or getattr(first, "query_length", None) or limit
    own = (int(own_query), int(getattr(first, "document_length", None) or limit))
    query_length, document_length = lengths_of(params, own, limit, folder)
    first.query_length, first.document_length = None, document_length
    if expansion:
        first.query_expansion = {**expansion, "length": query_length}
    else:
        first.query_length = query_length
    prompts = {kind: prompt_of(modules, kind if kind in modules.prompts else None) for kind in ("query", "document")}
    return LateModel(modules, query_length, document_length, bool(expansion), prompts, limit)


def lengths_of(params: LateEncoderParams, own: tuple[int, int], limit: int, folder: Path) -> tuple[int, int]:
    """Tokens at which queries and documents are cut: those that are given, else a model's own.

    Raises:
        InputError: lengths beyond the model's.
    """
    query, document = (min(one, limit) for one in own)
    lengths = int(params.query_length or query), int(params.document_length or document)
    for name, length in zip(("query_length", "document_length"), lengths, strict=True):
        if length > limit:
            raise InputError(f"{name}={length}: expected an integer <= {limit}, as {folder} takes no more tokens")
    return lengths
