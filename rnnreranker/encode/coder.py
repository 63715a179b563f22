"""CODER's models: a query encoder as a torch module, and a scorer of candidates on top of it, with their folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import write_json
from rnnreranker.encode.in_batches import padded
from rnnreranker.encode.model_folder import config_of, find_model, loading, read_settings
from rnnreranker.encode.params import TRAINED_POOLINGS, ScorerParams
from rnnreranker.encode.transformer import check_vocabulary, load_rest, load_whole, save_rest

COSINE_SCALE = 20.0  # where vectors have length 1: scores in [-1, 1] would leave the softmax nearly flat
TYPE = "rnnreranker-scorer"  # in config.json
WEIGHTS = "model.safetensors"
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")  # of configurations
ENCODER = "encoder"  # the folder of the transformer and its tokenizer
INNER = "encoder.whole."  # names of the weights that stand there


class QueryEncoder(nn.Module):
    """Token numbers to query vectors, (b, d); see `load_query_encoder`.

    Args:
        whole: of sentence-transformers: a transformer with hidden size h, its pooling, and perhaps a linear layer and
            scaling to length 1. Its `truncate_dim` counts after the pooling.
        inverse_temperature: factor of scores, optionally learned.
    """

    def __init__(self, whole: Any, inverse_temperature: float, learn_temperature: bool) -> None:
        super().__init__()
        self.whole = whole
        self.inverse_temperature = nn.Parameter(torch.tensor(inverse_temperature), requires_grad=learn_temperature)

    @property
    def transformer(self) -> Any:
        return self.whole[0].model

    def states(self, tokens: Tensor, attention: Tensor) -> Tensor:
        """(b, T, h): the states of tokens."""
        return self.transformer(input_ids=tokens, attention_mask=attention).last_hidden_state

    def forward(self, tokens: Tensor, attention: Tensor) -> Tensor:
        """(b, d): the vectors of b queries; tokens, attention: (b, T) int64, attention 0 at padding."""
        return self.pool(self.states(tokens, attention), attention)

    def pool(self, states: Tensor, attention: Tensor) -> Tensor:
        """(b, d): one vector a query from its token states."""
        _, pooling, *others = self.whole
        features = pooling({"token_embeddings": states, "attention_mask": attention})
        features["sentence_embedding"] = features["sentence_embedding"][:, : self.whole.truncate_dim]
        for module in others:
            features = module(features)
        return features["sentence_embedding"]


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

    def pad(self, cut: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        tokens, attention = map(torch.from_numpy, padded(cut, self._pad))
        return tokens, attention


def load_query_encoder(
    name: str,
    dimension: int,
    *,
    dropout: float | None = None,
    inverse_temperature: float | None = None,
    learn_temperature: bool = True,
    max_tokens: int | None = None,
    **given: Any,
) -> tuple[QueryEncoder, PromptedTokens, Path]:
    """The query encoder of a name or folder, its tokens, and its folder.

    Args:
        name: as in `find_model`; dimension: of the document vectors.
        given: settings of `EncoderParams` in place of the files'; dropout: in place of that of config.json.
        inverse_temperature: factor of scores; None = 1, or 20 for vectors of length 1; learn_temperature: train it.
        max_tokens: of training queries, special ones included; None = the model's own limit, which it keeps.

    Raises:
        InputError, UnavailableError: as `find_model`; pooling that is not mean or cls, layers after pooling.
    """
    require("sentence_transformers", "training an encoder", "'rnnreranker[train]'")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    folder = find_model(name)
    own = read_settings(folder.path, folder.known, **given)
    if own.beyond not in ("", "Dense") or own.pooling not in TRAINED_POOLINGS:
        said = f"has a module {own.beyond}" if own.beyond else f"pooling is {own.pooling}"
        raise InputError(
            f"{folder.path}: {said}; training takes a transformer with pooling={' or '.join(TRAINED_POOLINGS)}"
        )
    path = folder.path / own.transformer
    with loading(path, "an encoder"):
        check_vocabulary(path, load_whole(path))
        text = Transformer(
            str(path),
            model_kwargs={"local_files_only": True, "dtype": torch.float32},
            config_kwargs={} if dropout is None else dict.fromkeys(DROPOUTS, dropout),
            do_lower_case=own.lowercase,
        )
    usual = min(value for value in (text.max_seq_length, own.max_length, 512) if value)
    limit, text.max_seq_length = min(usual, max_tokens or usual), own.max_length or usual
    if getattr(text.model, "pooler", None) is not None:
        text.model.pooler.requires_grad_(False)  # plays no part in the vector
    hidden, kept, layers = int(text.model.config.hidden_size), own.truncate_dim, list[Any]()
    if own.beyond:
        before = SentenceTransformer(str(folder.path), device="cpu", local_files_only=True)
        layers = [one for one in before if isinstance(one, Dense)]
    elif min(hidden, kept or hidden) != dimension:
        layers, kept = [Dense(hidden, dimension, activation_function=nn.Identity())], None
        say(
            f"{name}: its vectors have {hidden} dimensions, the index has {dimension}: a projection is added and "
            "trained with it"
        )
    if layers and layers[-1].out_features != dimension:
        says = f"{layers[-1].out_features} numbers by its own linear layer"
        raise InputError(f"{folder.path}: gives {says}, the index has {dimension}; expected the same")
    whole = SentenceTransformer(
        modules=[text, Pooling(hidden, own.pooling), *layers, *([Normalize()] if own.normalize else [])],
        prompts={"query": own.query_prompt} if own.query_prompt else {},
        device="cpu",
        similarity_fn_name="dot",
        truncate_dim=kept,
    )
    scale = inverse_temperature or (COSINE_SCALE if own.normalize else 1.0)
    return QueryEncoder(whole, scale, learn_temperature), PromptedTokens(text, own.query_prompt, limit), folder.path


def write_encoder(folder: Path, encoder: QueryEncoder) -> None:
    """Write the encoder as sentence-transformers does.

    A projection is a Dense module, which `search` and sentence-transformers apply; Pyserini loads only folders without
    one.
    """
    encoder.whole.save_pretrained(str(folder), create_model_card=False)


class ScorerNetwork(nn.Module):
    """A number for each candidate of a query, independent of the order of candidates."""

    def __init__(self, dimension: int, hidden: int, params: ScorerParams) -> None:
        super().__init__()
        self.kind, width = params.scorer, params.width
        self.document, self.query = (
            nn.Sequential(nn.Linear(size, width), nn.LayerNorm(width))
            for size in (dimension, hidden if self.kind == "decoder" else dimension)
        )
        layers: list[nn.Module] = []
        for block in range(params.blocks):
            if self.kind == "feed-forward":
                size = width if block else 3 * width
                layers += [nn.Linear(size, width), nn.GELU(), nn.Dropout(params.dropout)]
            else:
                kind: Any = nn.TransformerEncoderLayer if self.kind == "encoder" else nn.TransformerDecoderLayer
                options = {"activation": "gelu", "batch_first": True, "norm_first": True}
                layers.append(kind(width, params.heads, 4 * width, params.dropout, **options))
        self.layers = nn.ModuleList([nn.Sequential(*layers)] if self.kind == "feed-forward" else layers)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))
        if params.residual:
            nn.init.zeros_(self.head[1].weight)
            nn.init.zeros_(self.head[1].bias)

    def forward(self, queries: Tensor, states: Tensor, attention: Tensor, documents: Tensor, valid: Tensor) -> Tensor:
        """(b, N) float: a number for each candidate, any value at padding.

        Args:
            queries: (b, d) query vectors; states: (b, T, h) of their tokens; attention: (b, T), 0 at padding.
            documents: (b, N, d) candidate vectors; valid: (b, N) bool, at least one True in each row.
        """
        candidates = self.document(documents)  # (b, N, width)
        query = self.query(states) if self.kind == "decoder" else self.query(queries).unsqueeze(1)
        if self.kind == "feed-forward":
            query = query.expand_as(candidates)
            candidates = self.layers[0](torch.cat([query, candidates, query * candidates], dim=2))
        elif self.kind == "encoder":  # the query is one more element, with a projection of its own
            everything = torch.cat([query, candidates], dim=1)
            ignored = torch.cat([torch.zeros_like(valid[:, :1]), ~valid], dim=1)
            for layer in self.layers:
                everything = layer(everything, src_key_padding_mask=ignored)
            candidates = everything[:, 1:]
        else:
            ignored = {"tgt_key_padding_mask": ~valid, "memory_key_padding_mask": attention == 0}
            for layer in self.layers:
                candidates = layer(candidates, query, **ignored)
        return self.head(candidates).squeeze(2)


class CandidateScorer(nn.Module):
    """s_c = t (<q, d_c> + phi(c)), phi a ScorerNetwork; without `residual` s_c = t phi(c).

    Args:
        encoder: gives q, and the token states for a decoder; dimension: d, of the documents.
    """

    def __init__(self, encoder: QueryEncoder, dimension: int, params: ScorerParams) -> None:
        super().__init__()
        self.encoder, self.params, self.dimension = encoder, params, dimension
        self.scorer = ScorerNetwork(dimension, int(encoder.transformer.config.hidden_size), params)

    @property
    def inverse_temperature(self) -> Tensor:
        return self.encoder.inverse_temperature

    def score(self, states: Tensor, attention: Tensor, documents: Tensor, valid: Tensor) -> Tensor:
        """(b, N) float: scores, any value at padding; arguments as `ScorerNetwork.forward`."""
        queries = self.encoder.pool(states, attention)
        scores: Tensor = self.scorer(queries, states, attention, documents, valid)
        if self.params.residual:
            scores = scores + (documents @ queries.unsqueeze(2)).squeeze(2)
        return scores * self.inverse_temperature


class TrainedScorer:
    """A scorer of a folder, without dropout.

    Args:
        path: a folder of `train --scorer`; device: "cpu" or "cuda".

    Raises:
        InputError: another folder, missing files or files that do not fit together.
    """

    def __init__(self, path: str | os.PathLike[str], device: str = "cpu") -> None:
        folder, self._device = Path(path), device
        config = config_of(folder, TYPE, "--scorer")
        with loading(folder, "a scorer", "train it again"):
            params, self.dimension = ScorerParams.of(config["scorer"]), int(config["dimension"])
            encoder, self._tokens, _ = load_query_encoder(str(folder / ENCODER), self.dimension)
            self.model = CandidateScorer(encoder, self.dimension, params)
            load_rest(self.model, folder / WEIGHTS, INNER)
        self.model.eval().to(device)

    def score(self, text: str, documents: np.ndarray) -> np.ndarray:
        """(n,) float64: the scores of the candidates of a query; documents: (n, d) float32."""
        with torch.no_grad():
            numbers, attention = (part.to(self._device) for part in self._tokens.pad(self._tokens.cut([text])))
            near = torch.from_numpy(documents).to(self._device).unsqueeze(0)
            valid = torch.ones(near.shape[:2], dtype=torch.bool, device=self._device)
            scores = self.model.score(self.model.encoder.states(numbers, attention), attention, near, valid)
            return np.asarray(scores[0].double().cpu())


def write_scorer(folder: Path, model: CandidateScorer) -> None:
    """Write config.json, model.safetensors (scorer and inverse temperature) and encoder/ into a folder."""
    write_encoder(folder / ENCODER, model.encoder)
    save_rest(model, folder / WEIGHTS, INNER)
    about = {"model_type": TYPE, "dimension": model.dimension, "scorer": model.params.to_dict()}
    write_json(folder / "config.json", about)
