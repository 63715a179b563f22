"""A sparse encoder as sentence-transformers runs it, on torch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.device import EXACT, moved, put
from rnnreranker.base.errors import require
from rnnreranker.encode.in_batches import CountedText, count_tokens
from rnnreranker.encode.model_settings import read_settings
from rnnreranker.encode.vocabulary import words_of

CHUNK = 16  # tokens of a batch whose logits are pooled at a time
LISTS = {"common": {"return_tensors": None}}  # of token numbers: transformers takes long to make tensors of them


class SparseModules:
    """The modules of a SparseEncoder.

    Attributes:
        vocabulary: words that a text may have; words: fingerprint of them in their order.
        limit: tokens that a text may have, None where the model does not say.
        lowercase: whether texts are lowered before their tokens are taken.

    Args:
        path: the folder of the model.
        device: of torch; dtype: of the weights.
    """

    def __init__(self, path: Path, device: str = "cpu", dtype: str = EXACT) -> None:
        package = require("sentence_transformers", "sparse encoders", "'rnnreranker[sparse]'")
        transformers = require("transformers", "sparse encoders", "transformers")
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self._model = put(package.SparseEncoder(str(path), device="cpu", local_files_only=True).eval(), device, dtype)
        self._device = device
        self._replaced = _pool_sooner(self._model)
        self.limit: int | None = self._model.max_seq_length
        self.lowercase = read_settings(path).lowercase
        self.tokenizer = self._model.tokenizer
        self._tokenizing = threading.Lock()  # a tokenizer keeps its settings in itself: one thread at a time
        self._model.max_seq_length = self.limit or 512
        self.vocabulary = self.forward([CountedText("a", 1, False)], "document").shape[1]
        self.words = words_of(self.tokenizer, self.vocabulary, path)

    @property
    def transformer(self) -> Any:
        """The model of transformers that gives the logits; of a model with two ways, that of documents."""
        from transformers import PreTrainedModel

        return next(module for module in self._model.modules() if isinstance(module, PreTrainedModel))

    def other_than_splade(self) -> str:
        """What is in the way of taking it for a masked-language model pooled by maximum; empty where nothing is."""
        if len(list(self._model.children())) != 2 or self._replaced != 1:
            return "its modules are not a masked-language model with SPLADE's pooling by maximum alone"
        return "it keeps some of the words of a text" if self._model.max_active_dims is not None else ""

    def tokens(self, texts: Sequence[str], limit: int) -> list[CountedText]:
        """What `forward` takes of each text, cut at a limit."""
        if not texts:
            return []
        with self._tokenizing:
            self._model.max_seq_length = limit
        lengths = count_tokens(self.tokenizer, self._tokenizing, texts)
        return [
            CountedText(text, min(length, limit), length > limit) for text, length in zip(texts, lengths, strict=True)
        ]

    def numbers(self, text: str) -> list[int]:
        """The numbers of a text's tokens, as the modules read them."""
        with self._tokenizing:
            numbers: list[int] = self._model.preprocess([text], task="document")["input_ids"][0].tolist()
        return numbers

    def forward(self, batch: list[CountedText], what: str) -> np.ndarray:
        """(b, V) float32: the weights of a batch of texts."""
        import torch

        with torch.inference_mode():
            with self._tokenizing:
                features = self._model.preprocess([one.text for one in batch], task=what, processing_kwargs=LISTS)
            features = {name: self._placed(value) for name, value in features.items()}
            weights = self._model(features, task=what)["sentence_embedding"]
            if weights.is_sparse:
                weights = weights.to_dense()
            if self._model.max_active_dims is not None:
                kept = torch.topk(weights, self._model.max_active_dims, dim=1)
                weights = torch.zeros_like(weights).scatter_(1, kept.indices, kept.values)
            return weights.float().cpu().numpy()

    def _placed(self, value: Any) -> Any:
        """What a model reads, lists of numbers as tensors, on its device."""
        if isinstance(value, list):
            return moved(np.array(value, dtype=np.int64), self._device)
        return value.to(self._device) if hasattr(value, "to") else value


def _pool_sooner(model: Any) -> int:
    """Replace SPLADE's pooling by maximum with one that gives the same bits in a fraction of the time; bound others.

    Returns how many were replaced.

    log(1 + relu(x)) rises with x, so that the logarithm of the largest logit is the largest logarithm: one logarithm
    a word and text, in place of one a word and token.
    """
    from rnnreranker.encode.sparse.splade_max import SpladeMax

    replaced = 0
    for name, module in list(model.named_modules()):
        if type(module).__name__ != "SpladePooling":
            continue
        if module.pooling_strategy == "max" and module.activation_function == "relu":
            above, _, last = name.rpartition(".")
            setattr(model.get_submodule(above), last, SpladeMax())
            replaced += 1
        else:
            module.chunk_size = CHUNK
    return replaced
