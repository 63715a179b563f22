"""Forward passes: transformers with pooling, or sentence-transformers for models with modules of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.device import EXACT, moved, put
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.process.phases import phase
from rnnreranker.encode.in_batches import padded
from rnnreranker.encode.model_settings import length_of

NO_LIMIT = 10**6  # tokenizers without a limit say a number larger than this


def load_whole(folder: Path, kind: str = "AutoModel", **options: Any) -> Any:
    """The model of a folder, every weight of it from its files; kind: the class of transformers.

    Raises:
        InputError: weights that the files lack, which transformers would draw at random without a word. Those of a
            pooler may be missing from an AutoModel: it plays no part in the vectors.
    """
    transformers = require("transformers", "encoding text", "transformers")
    transformers.logging.set_verbosity_error()
    model, loading_info = getattr(transformers, kind).from_pretrained(
        folder, local_files_only=True, output_loading_info=True, **options
    )
    if lost := sorted(name for name in loading_info["missing_keys"] if kind != "AutoModel" or "pooler" not in name):
        raise InputError(f"{folder}: its weights lack {lost[0]} ({len(lost)} missing); get the model again")
    return model


def check_vocabulary(folder: Path, tokenizer: Any, model: Any) -> None:
    """Look that every token has a row among the embeddings, and that there are words.

    Raises:
        InputError: a token number beyond them; special tokens alone, as of a folder without a tokenizer: transformers
            makes one that reads every word as unknown.
    """
    words, rows = tokenizer.get_vocab(), model.get_input_embeddings().weight.shape[0]
    if words and set(words.values()) <= {*tokenizer.all_special_ids}:
        raise InputError(
            f"{folder}: its tokenizer knows no words; expected tokenizer.json or vocab.txt in it: put those of "
            "the model that it was trained from beside its weights"
        )
    if not words or max(words.values()) >= rows:
        raise InputError(
            f"{folder}: its tokenizer has token {max(words.values(), default=0)}, its model {rows} embeddings; get it "
            "again"
        )


class TransformerModel:
    """An encoder of transformers (AutoModel) with pooling.

    Attributes:
        transformer, tokenizer: of transformers; pad: the token that fills short lists; limit: tokens that it can take;
            token_type: of all tokens.

    Args:
        folder: of the transformer and its tokenizer.
        settings: pooling, normalize, max_length (filled in here when it is None), dtype, lowercase, and perhaps
            truncate_dim: vectors are cut there before they are scaled to length 1.
        device: of torch; dtype: of the weights there, float32 = that of the settings.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], device: str = "cpu", dtype: str = EXACT) -> None:
        with phase("importing torch and transformers", "imports"):
            self._torch = require("torch", "encoding text", "torch")
            transformers = require("transformers", "encoding text", "transformers")
            transformers.AutoModel, transformers.AutoTokenizer  # noqa: B018  imported when they are asked for
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        if config.is_encoder_decoder:
            raise InputError(f"{folder}: an encoder-decoder model; expected an encoder with its pooling")
        with phase("loading the model"):
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            own = getattr(self._torch, settings["dtype"])
            self.transformer = put(load_whole(folder, dtype=own).eval(), device, dtype)
        self._device, self._folder = device, folder
        check_vocabulary(folder, self.tokenizer, self.transformer)
        limits = [getattr(config, "max_position_embeddings", None), self.tokenizer.model_max_length]
        limit = min((limit for limit in limits if limit and limit < NO_LIMIT), default=512)
        settings["max_length"] = length_of(settings["max_length"], limit, folder)
        self.settings = settings
        self.limit = int(limit)
        self.pad = self.tokenizer.pad_token_id or 0
        self.dimension = min(int(config.hidden_size), settings.get("truncate_dim") or int(config.hidden_size))
        self.token_type = 0

    def of_type(self, number: int) -> TransformerModel:
        """The same model for texts whose tokens are of another type than 0; InputError: a type that it has not."""
        types = int(getattr(self.transformer.config, "type_vocab_size", 0))
        if number >= types:
            raise InputError(f"document_type={number}: {self._folder} has {types} token types")
        other = copy(self)
        other.token_type = number
        return other

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """The token numbers of each text, cut at max_length; never empty."""
        if self.settings["lowercase"]:
            texts = [text.lower() for text in texts]
        ids_of_texts = self.tokenizer(
            list(texts),
            truncation=True,
            max_length=self.settings["max_length"],
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]
        return [tokens or [self.pad] for tokens in ids_of_texts]

    def length(self, tokens: list[int]) -> int:
        """The number of tokens of a text."""
        return len(tokens)

    def forward(self, batch: list[list[int]]) -> np.ndarray:
        """(b, d) float32: the vectors of a batch of token lists."""
        with self._torch.inference_mode():
            inputs = (moved(array, self._device) for array in padded(batch, self.pad))
            vectors: np.ndarray = self.vectors(*inputs).cpu().numpy()
        return vectors

    def vectors(self, tokens: Any, attention: Any) -> Any:
        """(b, d) float32 tensor: the vectors of a batch; tokens, attention: (b, longest) int64, as of `padded`."""
        types = {"token_type_ids": self._torch.full_like(tokens, self.token_type)} if self.token_type else {}
        states = self.transformer(input_ids=tokens, attention_mask=attention, **types).last_hidden_state.float()
        pooled = self._pool(states, attention)[:, : self.dimension]
        return self._torch.nn.functional.normalize(pooled, dim=1) if self.settings["normalize"] else pooled

    def _pool(self, states: Any, attention: Any) -> Any:
        """(b, d): one vector per text from its token vectors; padding takes no part."""
        pooling = self.settings["pooling"]
        if pooling == "cls":
            return states[:, 0]
        if pooling == "lasttoken":
            last = attention.sum(dim=1) - 1
            return states[self._torch.arange(states.shape[0], device=states.device), last]
        weights = attention.unsqueeze(-1).to(states.dtype)
        if pooling == "max":
            return states.masked_fill(weights == 0, float("-inf")).amax(dim=1)
        return (states * weights).sum(dim=1) / weights.sum(dim=1)


class SentenceTransformerModel:
    """A model of sentence-transformers with modules that only it can run (a Dense layer, say).

    Args:
        folder: with modules.json.
        settings: normalize, max_length (filled in here when it is None, but for word embeddings), dtype.
        module: what it is needed for, named when the package is missing.
        device, dtype: as of `TransformerModel`.

    Attributes:
        documents: of a Router with a tower for queries and one for documents (which `forward` of this very model does
            not take), what computes the vectors of documents; else this model.
    """

    def __init__(
        self, folder: Path, settings: dict[str, Any], module: str, device: str = "cpu", dtype: str = EXACT
    ) -> None:
        package = require("sentence_transformers", f"the module {module} of {folder}", "sentence-transformers")
        model = package.SentenceTransformer(
            str(folder),
            device=device,
            local_files_only=True,
            truncate_dim=settings.get("truncate_dim"),
            model_kwargs={"dtype": settings["dtype"]},
        )
        if model.max_seq_length == math.inf:  # word embeddings, cut by their tokenizer
            if settings["max_length"] is not None:
                raise InputError(f"{folder}: its length of texts is fixed; leave max_length out")
        else:
            settings["max_length"] = settings["max_length"] or model.max_seq_length
            model.max_seq_length = settings["max_length"]
        self._model = put(model.eval(), device, dtype)
        self._settings = settings
        self._tower: str | None = None
        self.documents = self
        if {"query", "document"} <= set(getattr(model[0], "sub_modules", ())):
            self._tower, self.documents = "query", copy(self)
            self.documents._tower = "document"
        get_dimension = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        self.dimension = int(get_dimension())

    def tokenize(self, texts: Sequence[str]) -> list[str]:
        """The texts themselves: sentence-transformers cuts them into tokens."""
        return list(texts)

    def length(self, tokens: str) -> int:
        """A guess at the number of tokens, for batches of about the same length."""
        return min(len(tokens) // 4 + 2, self._settings["max_length"] or 512)

    def forward(self, batch: list[str]) -> np.ndarray:
        """(b, d) float32: the vectors of a batch of texts."""
        vectors = self._model.encode(
            batch,
            batch_size=len(batch),
            prompt="",
            **({"task": self._tower} if self._tower else {}),
            normalize_embeddings=bool(self._settings["normalize"]),
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(vectors, dtype=np.float32)
