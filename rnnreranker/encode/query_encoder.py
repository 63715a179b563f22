"""The query encoder as a torch module: transformer, pooling, projection, temperature."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rnnreranker.base.errors import InputError, require
from rnnreranker.encode.in_batches import padded
from rnnreranker.encode.model_folder import find_model, loading, read_settings
from rnnreranker.encode.params import TRAINED_POOLINGS
from rnnreranker.encode.transformer import check_vocabulary, load_whole

COSINE_SCALE = 20.0  # where vectors have length 1: scores in [-1, 1] would leave the softmax nearly flat


class QueryEncoder(nn.Module):
    """Token numbers to query vectors, (b, d); see `load_query_encoder`.

    Args:
        transformer: of `transformers`, with hidden size h.
        pooling: "mean" of tokens, or "cls", the first token; normalize: scale vectors to length 1.
        dimension: d of the document vectors, reached by a linear layer unless it is h or `truncate_dim`.
        inverse_temperature: factor of scores, optionally learned.
    """

    def __init__(
        self,
        transformer: nn.Module,
        pooling: str,
        normalize: bool,
        dimension: int,
        inverse_temperature: float = 1.0,
        learn_temperature: bool = True,
        truncate_dim: int | None = None,
    ) -> None:
        super().__init__()
        from sentence_transformers.sentence_transformer.modules import Pooling

        hidden = int(transformer.config.hidden_size)
        self.transformer, self.pooling_module = transformer, Pooling(hidden, pooling)
        self.pooling, self.normalize, self.truncate_dim = pooling, normalize, truncate_dim
        width = min(hidden, truncate_dim or hidden)
        self.projection = nn.Linear(hidden, dimension) if width != dimension else None
        self.inverse_temperature = nn.Parameter(torch.tensor(inverse_temperature), requires_grad=learn_temperature)

    @property
    def dense(self) -> QueryEncoder:
        return self

    def states(self, tokens: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.transformer(input_ids=tokens, attention_mask=attention).last_hidden_state
        return states

    def forward(self, tokens: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        """(b, d): the vectors of b queries; tokens, attention: (b, T) int64, attention 0 at padding."""
        return self.pool(self.states(tokens, attention), attention)

    def pool(self, states: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        """(b, d): one vector a query from its token states."""
        features = {"token_embeddings": states, "attention_mask": attention}
        pooled: torch.Tensor = self.pooling_module(features)["sentence_embedding"]
        pooled = pooled[:, : self.truncate_dim] if self.projection is None else self.projection(pooled)
        return nn.functional.normalize(pooled, dim=1) if self.normalize else pooled


class PromptedTokens:
    """Texts to padded token tensors, with the model's prompt before each query.

    text: the module of sentence-transformers with tokenizer and transformer; max_length: tokens of a query at most.
    """

    def __init__(self, text: Any, prompt: str, max_length: int) -> None:
        self.text, self.prompt, self.max_length = text, prompt, max_length
        self._pad = text.tokenizer.pad_token_id or 0

    def cut(self, texts: Sequence[str]) -> list[list[int]]:
        prompted = [self.prompt + text for text in texts]
        ids_of_texts = self.text.tokenizer(prompted, truncation=True, max_length=self.max_length)["input_ids"]
        return [tokens or [self._pad] for tokens in ids_of_texts]

    def pad(self, cut: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        tokens, attention = map(torch.from_numpy, padded(cut, self._pad))
        return tokens, attention


def load_query_encoder(
    name: str,
    dimension: int,
    *,
    pooling: str | None = None,
    normalize: bool | None = None,
    dropout: float | None = None,
    inverse_temperature: float | None = None,
    learn_temperature: bool = True,
    max_tokens: int | None = None,
) -> tuple[QueryEncoder, PromptedTokens, Path]:
    """The query encoder of a name or folder, its tokens, and its folder.

    Args:
        name: as in `find_model`; dimension: of the document vectors.
        pooling, normalize, dropout: override the model's files; learn_temperature: whether training changes it.
        inverse_temperature: factor of scores; None = 1, or 20 for vectors of length 1.
        max_tokens: length of queries with special tokens; None = that of the model's files.

    Raises:
        InputError, UnavailableError: as `find_model`; pooling that is not mean or cls, layers after pooling.
    """
    require("sentence_transformers", "training an encoder", "'rnnreranker[train]'")
    from sentence_transformers.base.modules import Transformer
    from transformers import AutoConfig

    folder = find_model(name)
    own = read_settings(folder.path, folder.known)
    if own.beyond:
        raise InputError(f"{folder.path}: has a module {own.beyond}; training takes a transformer with its pooling")
    pooling = pooling or own.pooling
    if pooling not in TRAINED_POOLINGS:
        known_ones = " or ".join(TRAINED_POOLINGS)
        raise InputError(f"{folder.path}: pooling is {pooling or 'not said in its files'}; give pooling={known_ones}")
    normalize, path = bool(own.normalize if normalize is None else normalize), folder.path / own.transformer
    with loading(path, "an encoder"):
        config = AutoConfig.from_pretrained(path, local_files_only=True)
        for field in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"):
            if dropout is not None and hasattr(config, field):
                setattr(config, field, dropout)
        model = load_whole(path, config=config, dtype=torch.float32)
        check_vocabulary(path, model)
        text = Transformer(str(path), model_kwargs={"local_files_only": True}, do_lower_case=own.lowercase)
        text.model = model
    scale = inverse_temperature or (COSINE_SCALE if normalize else 1.0)
    encoder = QueryEncoder(model, pooling, normalize, dimension, scale, learn_temperature, own.truncate_dim)
    for parameter in (getattr(model, "pooler", None) and model.pooler.parameters()) or ():
        parameter.requires_grad_(False)  # plays no part in the vector
    limit = min(value for value in (text.max_seq_length, own.max_length, max_tokens, 512) if value)
    return encoder, PromptedTokens(text, own.query_prompt, limit), folder.path


def write_encoder(
    folder: Path, encoder: QueryEncoder, tokens: PromptedTokens, max_length: int, projected: bool = True
) -> None:
    """Write the encoder as sentence-transformers does; max_length: tokens at which texts are cut.

    A projection becomes a Dense module, which `search` and sentence-transformers apply; Pyserini loads only folders
    without one. projected: False without projection.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize

    tokens.text.max_seq_length = max_length
    modules: list[Any] = [tokens.text, encoder.pooling_module]
    layer = encoder.projection if projected else None
    if layer is not None:
        weights: dict[str, Any] = {"init_weight": layer.weight.detach(), "init_bias": layer.bias.detach()}
        modules.append(Dense(layer.in_features, layer.out_features, activation_function=nn.Identity(), **weights))
    modules += [Normalize()] if encoder.normalize else []
    prompts = {"query": tokens.prompt} if tokens.prompt else {}
    options: dict[str, Any] = {"device": str(encoder.inverse_temperature.device), "similarity_fn_name": "dot"}
    options["truncate_dim"] = encoder.truncate_dim if layer is None else None
    whole = SentenceTransformer(modules=modules, prompts=prompts, **options)
    whole.save_pretrained(str(folder), create_model_card=False)
