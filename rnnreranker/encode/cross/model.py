"""A cross-encoder as sentence-transformers runs it, on torch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rnnreranker.base.device import EXACT, moved, put
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.private.sentence_transformers import prompt_of
from rnnreranker.encode.in_batches import count_tokens
from rnnreranker.encode.model_settings import length_of, read_settings
from rnnreranker.encode.transformer import check_vocabulary, load_whole

ARCHITECTURE = "ForSequenceClassification"
LONGEST = 512  # tokens of a pair where neither model nor tokenizer says it
READ = ("input_ids", "token_type_ids", "attention_mask")  # by the model
UNPADDED = {"text": {"padding": False}, "common": {"return_tensors": None}}
AT_ONCE = 1024  # pairs given to the tokenizer


class PairTokens(NamedTuple):
    """What the model reads of a pair, not padded: (t,) int32 each; whether there was more."""

    inputs: dict[str, np.ndarray]
    cut: bool

    @property
    def length(self) -> int:
        """How many tokens there are."""
        return len(self.inputs["input_ids"])


class CrossModel:
    """A CrossEncoder with one label, in evaluation mode.

    Attributes:
        modules: of sentence-transformers.
        max_length: tokens at which a pair is cut, its longer text first.
        prompt: what stands before the first text of a pair.

    Args:
        path: the folder of the model.
        max_length: None = the model's own.
        device: of torch; dtype: of the weights.
    """

    def __init__(self, path: Path, max_length: int | None = None, device: str = "cpu", dtype: str = EXACT) -> None:
        package = require("sentence_transformers", "cross-encoders", "'rnnreranker[cross]'")
        transformers = require("transformers", "cross-encoders", "transformers")
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        whole = load_whole(path / read_settings(path).transformer, f"AutoModel{ARCHITECTURE}")
        if (labels := whole.config.num_labels) != 1:
            raise InputError(
                f"{path}: a classifier of {labels} labels; expected a cross-encoder with one (num_labels=1)"
            )
        self.modules = put(package.CrossEncoder(str(path), device=device, local_files_only=True).eval(), device, dtype)
        check_vocabulary(path, self.modules.tokenizer, whole)
        self.prompt = prompt_of(self.modules)
        config = self.modules.model.config
        own = min(self.modules.max_seq_length or 2**31, getattr(config, "max_position_embeddings", None) or LONGEST)
        self.max_length = length_of(max_length, own, path)
        self.modules.max_seq_length = self.max_length
        words = self.modules.tokenizer
        self.right = words.padding_side == "right"
        self._padding = {"input_ids": words.pad_token_id or 0, "token_type_ids": words.pad_token_type_id or 0}
        self._padding["attention_mask"] = 0
        self._device = device
        self._tokenizing = threading.Lock()  # a tokenizer keeps its settings in itself: one thread at a time

    def tokens(self, pairs: Sequence[tuple[str, str]]) -> list[PairTokens]:
        """What `forward` takes of each pair, cut at the limit."""
        read = [one for start in range(0, len(pairs), AT_ONCE) for one in self._read(list(pairs[start:][:AT_ONCE]))]
        cut = self._cut(pairs, [len(one["input_ids"]) for one in read])
        return [PairTokens(one, bool(more)) for one, more in zip(read, cut, strict=True)]

    def _read(self, pairs: list[tuple[str, str]]) -> list[dict[str, np.ndarray]]:
        with self._tokenizing:
            tokens = self.modules.preprocess(pairs, prompt=self.prompt or None, processing_kwargs=UNPADDED)
        columns = {key: [np.array(row, dtype=np.int32) for row in tokens[key]] for key in READ if key in tokens}
        return [dict(zip(columns, rows, strict=True)) for rows in zip(*columns.values(), strict=True)]

    def _cut(self, pairs: Sequence[tuple[str, str]], lengths: list[int]) -> np.ndarray:
        """(n,) bool: which pairs have more tokens than the limit, among those whose tokens reach it."""
        cut = np.array(lengths) >= self.max_length
        full = np.flatnonzero(cut).tolist()
        for start in range(0, len(full), AT_ONCE):
            rows = full[start : start + AT_ONCE]
            queries, texts = zip(*(pairs[row] for row in rows), strict=True)
            given = [self.prompt + query for query in queries]
            whole = count_tokens(self.modules.tokenizer, self._tokenizing, given, texts)
            cut[rows] = np.array(whole) > self.max_length
        return cut

    def forward(self, batch: Sequence[PairTokens]) -> np.ndarray:
        """(b,) float32: the scores of a batch of pairs."""
        import torch

        longest = max(one.length for one in batch)
        features: dict[str, Any] = {"modality": "text"}
        for key in batch[0].inputs:
            filled = np.full((len(batch), longest), self._padding[key], dtype=np.int64)
            for row, one in zip(filled, batch, strict=True):
                row[slice(0, one.length) if self.right else slice(-one.length, None)] = one.inputs[key]
            features[key] = moved(filled, self._device)
        with torch.inference_mode():
            scores: np.ndarray = self.modules(features)["scores"].float().reshape(len(batch)).cpu().numpy()
        return scores
