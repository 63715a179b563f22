"""A trained scorer of candidates: its networks, and the folder of training and reranking."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from rnnreranker.base.files import write_json
from rnnreranker.encode.model_folder import config_of, loading
from rnnreranker.encode.params import ScorerParams
from rnnreranker.encode.query_encoder import PromptedTokens, QueryEncoder, load_query_encoder, write_encoder
from rnnreranker.encode.transformer import load_rest, save_rest


class ScorerNetwork(nn.Module):
    """A number for each candidate of a query, independent of the order of candidates."""

    def __init__(self, dimension: int, hidden: int, params: ScorerParams) -> None:
        super().__init__()
        self.kind, width = params.scorer, params.width
        options: dict[str, Any] = {"dim_feedforward": 4 * width, "dropout": params.dropout, "activation": "gelu"}
        options |= {"batch_first": True, "norm_first": True}
        self.document = nn.Sequential(nn.Linear(dimension, width), nn.LayerNorm(width))
        self.query = nn.Sequential(
            nn.Linear(hidden if self.kind == "decoder" else dimension, width), nn.LayerNorm(width)
        )
        if self.kind == "feed-forward":
            layers: list[nn.Module] = []
            for block in range(params.blocks):
                size = 3 * width if block == 0 else width
                layers += [nn.Linear(size, width), nn.GELU(), nn.Dropout(params.dropout)]
            self.layers = nn.ModuleList([nn.Sequential(*layers)])
        else:
            kind = nn.TransformerEncoderLayer if self.kind == "encoder" else nn.TransformerDecoderLayer
            self.layers = nn.ModuleList(kind(width, params.heads, **options) for _ in range(params.blocks))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))
        if params.residual:
            nn.init.zeros_(self.head[1].weight)
            nn.init.zeros_(self.head[1].bias)

    def forward(
        self,
        queries: torch.Tensor,
        states: torch.Tensor,
        attention: torch.Tensor,
        documents: torch.Tensor,
        valid: torch.Tensor,
    ) -> torch.Tensor:
        """(b, N) float: a number for each candidate, any value at padding.

        Args:
            queries: (b, d) query vectors; states: (b, T, h) of their tokens; attention: (b, T), 0 at padding.
            documents: (b, N, d) candidate vectors; valid: (b, N) bool, at least one True in each row.
        """
        candidates = self.document(documents)  # (b, N, width)
        if self.kind == "feed-forward":
            query = self.query(queries).unsqueeze(1).expand_as(candidates)
            candidates = self.layers[0](torch.cat([query, candidates, query * candidates], dim=2))
        elif self.kind == "encoder":  # the query is one more element, with a projection of its own
            everything = torch.cat([self.query(queries).unsqueeze(1), candidates], dim=1)
            ignored = torch.cat([torch.zeros_like(valid[:, :1]), ~valid], dim=1)
            for layer in self.layers:
                everything = layer(everything, src_key_padding_mask=ignored)
            candidates = everything[:, 1:]
        else:
            tokens = self.query(states)
            for layer in self.layers:
                candidates = layer(
                    candidates,
                    tokens,
                    tgt_key_padding_mask=~valid,
                    memory_key_padding_mask=attention == 0,
                )
        scores: torch.Tensor = self.head(candidates).squeeze(2)
        return scores


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
    def inverse_temperature(self) -> torch.Tensor:
        return self.encoder.inverse_temperature

    @property
    def dense(self) -> QueryEncoder:
        return self.encoder

    def score(
        self, states: torch.Tensor, attention: torch.Tensor, documents: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """(b, N) float: scores, any value at padding; arguments as `ScorerNetwork.forward`."""
        queries = self.encoder.pool(states, attention)
        scores: torch.Tensor = self.scorer(queries, states, attention, documents, valid)
        if self.params.residual:
            scores = scores + (documents @ queries.unsqueeze(2)).squeeze(2)
        return scores * self.inverse_temperature


TYPE = "rnnreranker-scorer"  # in config.json
WEIGHTS = "model.safetensors"
ENCODER = "encoder"  # the folder of the transformer and its tokenizer
INNER = "encoder.transformer."  # names of the weights that stand there


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
            how = {name: config[name] for name in ("pooling", "normalize")}
            encoder, self._tokens, _ = load_query_encoder(str(folder / ENCODER), self.dimension, **how)
            self.model = CandidateScorer(encoder, self.dimension, params)
            load_rest(self.model, folder / WEIGHTS, INNER)
        self.model.eval().to(device)

    def score(self, text: str, documents: np.ndarray) -> np.ndarray:
        """(n,) float64: the scores of the candidates of a query; documents: (n, d) float32."""
        with torch.no_grad():
            numbers, attention = (part.to(self._device) for part in self._tokens.pad(self._tokens.cut([text])))
            states = self.model.encoder.states(numbers, attention)
            near = torch.from_numpy(documents).to(self._device).unsqueeze(0)
            valid = torch.ones(near.shape[:2], dtype=torch.bool, device=self._device)
            scores: np.ndarray = self.model.score(states, attention, near, valid)[0].double().cpu().numpy()
            return scores


def write_scorer(folder: Path, model: CandidateScorer, tokens: PromptedTokens, max_length: int) -> None:
    """Write config.json, model.safetensors (scorer, projection, inverse temperature) and encoder/ into a folder."""
    write_encoder(folder / ENCODER, model.encoder, tokens, max_length, projected=False)
    save_rest(model, folder / WEIGHTS, INNER)
    config = {"model_type": TYPE, "dimension": model.dimension, "scorer": model.params.to_dict()}
    write_json(folder / "config.json", config | {name: getattr(model.dense, name) for name in ("pooling", "normalize")})
