"""Networks that score a set of candidates: feed-forward, self-attention over them, cross-attention to the query."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from rnnreranker.encode.scorer.params import ScorerParams


class ScorerNetwork(nn.Module):
    """One number for each candidate of a query; candidates have no positions, so their order only orders the result.

    Args:
        dimension: d, of documents and query vectors.
        hidden: h, of the query encoder's token states.
        params: of the scorer.
    """

    def __init__(self, dimension: int, hidden: int, params: ScorerParams) -> None:
        super().__init__()
        self.kind, width = params.scorer, params.width
        options: dict[str, Any] = {
            "dim_feedforward": 4 * width,
            "dropout": params.dropout,
            "activation": "gelu",
            "batch_first": True,
            "norm_first": True,
        }
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
            nn.init.zeros_(self.head[1].weight)  # type: ignore[arg-type]
            nn.init.zeros_(self.head[1].bias)  # type: ignore[arg-type]

    def forward(
        self,
        queries: torch.Tensor,
        states: torch.Tensor,
        attention: torch.Tensor,
        documents: torch.Tensor,
        valid: torch.Tensor,
    ) -> torch.Tensor:
        """(b, N) float: a number for each candidate, any where it is padding.

        Args:
            queries: (b, d) query vectors; states: (b, T, h) of their tokens; attention: (b, T), 0 at padding.
            documents: (b, N, d) candidate vectors; valid: (b, N) bool, one True at least in each row.
        """
        candidates = self.document(documents)  # (b, N, width)
        if self.kind == "feed-forward":
            query = self.query(queries).unsqueeze(1).expand_as(candidates)
            candidates = self.layers[0](torch.cat([query, candidates, query * candidates], dim=2))
        elif self.kind == "encoder":  # the query stands beside its candidates, told apart by its own projection
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
