"""Pairs of a query and a document to a score: cross-encoders, run by sentence-transformers' CrossEncoder."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rnnreranker.encode.in_batches import compute_batches
from rnnreranker.encode.model_folder import ModelFolder, content_of, find_model
from rnnreranker.encode.model_settings import read_settings
from rnnreranker.encode.params import CrossEncoderParams
from rnnreranker.encode.transformer import check_vocabulary, load_whole
from rnnreranker.errors import InputError, UnavailableError, require
from rnnreranker.files import fingerprint
from rnnreranker.files.json_files import read_json

KIND = "cross-encoder"  # of method
ARCHITECTURE = "ForSequenceClassification"
BATCH_TOKENS = 1024  # padded tokens of a batch: what a core's caches like best
DEVICE_TOKENS = 2**16  # of a batch on a GPU
LONGEST = 512  # tokens of a pair where neither model nor tokenizer says it
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")  # files of which every tokenizer has one
READ = ("input_ids", "token_type_ids", "attention_mask")  # by the model
UNPADDED = {"text": {"padding": False}, "common": {"return_tensors": None}}
AT_ONCE = 1024  # pairs given to the tokenizer
LIBRARIES = ("torch", "transformers", "sentence_transformers")  # another version may give other last bits


class Scored(NamedTuple):
    """The scores of n pairs, (n,) float32, and which of them were cut at the length limit, (n,) bool."""

    scores: np.ndarray
    cut: np.ndarray


class PairScorer:
    """A cross-encoder: a score of every pair of texts, larger = more relevant; made by `load_pair_scorer`.

    A score is the one logit of the model, as it is: no sigmoid is applied, whatever the model's files say.

    Attributes:
        name: hub id or path; device: where it computes; max_length: tokens at which a pair is cut, its longer text
            first.
        model: the CrossEncoder that computes.
        fingerprint: of everything that a score depends on besides the texts.

    Args:
        folder: the model's files.
        params: what the caller says of it.
        device: of torch.
    """

    def __init__(self, folder: ModelFolder, params: CrossEncoderParams, device: str = "cpu") -> None:
        package = require("sentence_transformers", "cross-encoders", "'rnnreranker[cross]'")
        transformers = require("transformers", "cross-encoders", "transformers")
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        whole = load_whole(folder.path / read_settings(folder.path).transformer, f"AutoModel{ARCHITECTURE}")
        if (labels := whole.config.num_labels) != 1:
            raise InputError(
                f"{folder.path}: a classifier of {labels} labels; expected a cross-encoder with one (num_labels=1)"
            )
        self.model = package.CrossEncoder(str(folder.path), device=device, local_files_only=True).eval()
        check_vocabulary(folder.path, self.model.tokenizer, whole)
        self._prompt = self.model._resolve_prompt(None, None) or ""
        config = self.model.model.config
        limit = min(self.model.max_seq_length or 2**31, getattr(config, "max_position_embeddings", None) or LONGEST)
        if params.max_length is not None and params.max_length > limit:
            raise InputError(f"max_length={params.max_length}: {folder.path} takes at most {limit} tokens")
        self.max_length = int(params.max_length or limit)
        self.model.max_seq_length = self.max_length
        words = self.model.tokenizer
        self._padding = {"input_ids": words.pad_token_id or 0, "token_type_ids": words.pad_token_type_id or 0}
        self._padding["attention_mask"] = 0
        self._tokenizing = threading.Lock()  # a tokenizer keeps its settings in itself: one thread at a time
        self.name = folder.name
        self.params = params
        self.device = device
        versions = [metadata.version(library) for library in LIBRARIES]
        where = device.partition(":")[0]
        self.fingerprint = fingerprint(KIND, content_of(folder.path), self.max_length, self._prompt, where, versions)

    def score(self, pairs: Sequence[tuple[str, str]], *, threads: int | None = None) -> Scored:
        """The scores of pairs (query, document), in their order.

        Pairs are put into batches by length and content, and every batch is computed by one thread: neither the order
        of the pairs nor the number of threads changes a bit. (Other pairs in the list may change the last bits.)

        Args:
            pairs: any strings, empty ones too.
            threads: None = one per core; on a GPU one.

        Raises:
            InputError: a text that is not a string, a score that is NaN or infinite.
        """
        for place, pair in enumerate(pairs):
            if len(pair) != 2 or not all(isinstance(text, str) for text in pair):
                raise InputError(f"pair {place}: expected two strings, the text of a query and that of a document")
        distinct = sorted({(query, text) for query, text in pairs})
        scores = np.empty(len(distinct), dtype=np.float32)
        if not distinct:
            return Scored(scores, np.zeros(0, dtype=bool))
        tokens = [one for start in range(0, len(distinct), AT_ONCE) for one in self._tokens(distinct[start:][:AT_ONCE])]
        lengths = [len(one["input_ids"]) for one in tokens]

        def compute(batch: list[int]) -> None:
            scores[batch] = self._forward([tokens[place] for place in batch])

        on_cpu = self.device == "cpu"
        compute_batches(compute, lengths, BATCH_TOKENS if on_cpu else DEVICE_TOKENS, threads if on_cpu else 1)
        if (wrong := np.flatnonzero(~np.isfinite(scores))).size:
            query, text = distinct[int(wrong[0])]
            raise InputError(
                f"{self.name}: {len(wrong)} of {len(distinct)} scores are NaN or infinite (first: {query[:40]!r} with "
                f"{text[:40]!r}); expected finite ones: train or get the model again"
            )
        places = {pair: place for place, pair in enumerate(distinct)}
        taken = [places[query, text] for query, text in pairs]
        return Scored(scores[taken], self._cut(distinct, lengths)[taken])

    def _tokens(self, pairs: list[tuple[str, str]]) -> list[dict[str, np.ndarray]]:
        """What the model reads of each pair, cut at the limit and not padded: numbers of tokens and their kinds."""
        with self._tokenizing:
            found = self.model.preprocess(pairs, prompt=self._prompt or None, processing_kwargs=UNPADDED)
        columns = {key: [np.array(row, dtype=np.int32) for row in found[key]] for key in READ if key in found}
        return [dict(zip(columns, rows, strict=True)) for rows in zip(*columns.values(), strict=True)]

    def _cut(self, pairs: list[tuple[str, str]], lengths: list[int]) -> np.ndarray:
        """(n,) bool: which pairs have more tokens than the limit, among those whose tokens reach it."""
        cut = np.array(lengths) >= self.max_length
        full = np.flatnonzero(cut).tolist()
        plain = {"truncation": False, "padding": False, "return_attention_mask": False, "return_token_type_ids": False}
        for start in range(0, len(full), AT_ONCE):
            places = full[start : start + AT_ONCE]
            queries, texts = zip(*(pairs[place] for place in places), strict=True)
            with self._tokenizing:
                found = self.model.tokenizer([self._prompt + query for query in queries], list(texts), **plain)
            cut[places] = [len(tokens) > self.max_length for tokens in found["input_ids"]]
        return cut

    def _forward(self, batch: list[dict[str, np.ndarray]]) -> np.ndarray:
        """(b,) float32: the scores of a batch of pairs."""
        import torch

        longest = max(len(one["input_ids"]) for one in batch)
        features: dict[str, Any] = {"modality": "text"}
        for key in batch[0]:
            padded = np.full((len(batch), longest), self._padding[key], dtype=np.int64)
            for row, one in zip(padded, batch, strict=True):
                row[self._place(len(one[key]))] = one[key]
            features[key] = torch.from_numpy(padded).to(self.device)
        with torch.inference_mode():
            scores: np.ndarray = self.model(features)["scores"].float().reshape(len(batch)).cpu().numpy()
        return scores

    def _place(self, length: int) -> slice:
        """Where a row's tokens stand among its padding."""
        return slice(0, length) if self.model.tokenizer.padding_side == "right" else slice(-length, None)


def load_pair_scorer(name: str, device: str | None = None, **given: Any) -> PairScorer:
    """The cross-encoder of a name, hub id or folder.

    Args:
        name: "ms-marco-minilm-l6", … (the files of `encode/cross_models`), a hub id `org/model`, a folder: of a model
            for sequence classification with one label, as transformers or sentence-transformers save it.
        device: "cpu" (where it is None), "cuda", "cuda:1" or "mps".
        given: fields of `CrossEncoderParams`.

    Raises:
        InputError: no such model, a model for something else or of several labels, a folder without tokenizer.
        UnavailableError: a hub model that is neither in the cache nor reachable.
    """
    params = CrossEncoderParams(**given)
    folder = find_model(name, KIND)
    _check_kind(folder.path)
    try:
        return PairScorer(folder, params, device or "cpu")
    except (OSError, ValueError, KeyError, RuntimeError, IndexError, AttributeError) as error:
        if isinstance(error, (InputError, UnavailableError)):
            raise
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(f"{folder.path}: cannot be loaded as a cross-encoder ({reason}); get it again") from None


def pair_digest_of(name: str) -> str:
    """What tells the model of a name from others, whatever the settings; nothing is loaded.

    Raises:
        InputError, UnavailableError: as `load_pair_scorer`.
    """
    return content_of(find_model(name, KIND).path)


def _check_kind(folder: Path) -> None:
    """Look that a folder holds a trained classifier with its tokenizer; another model would get random weights."""
    again = "get the model again"
    said = read_json(folder / read_settings(folder).transformer / "config.json", "settings file of the model", again)
    kinds = said.get("architectures") if isinstance(said, dict) else None
    if not isinstance(kinds, list) or not any(str(kind).endswith(ARCHITECTURE) for kind in kinds):
        shown = " or ".join(map(str, kinds)) if isinstance(kinds, list) and kinds else "model without architectures"
        raise InputError(
            f"{folder}: a {shown}; expected a cross-encoder (...{ARCHITECTURE} with one label); "
            "a model that makes vectors is for --encoder"
        )
    if not any(any(folder.rglob(pattern)) for pattern in TOKENIZERS):
        raise InputError(
            f"{folder}: no tokenizer in this folder; expected one of {', '.join(TOKENIZERS)}: save it beside the model"
        )
