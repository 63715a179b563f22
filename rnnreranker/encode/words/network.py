"""The network of a term scorer: a transformer, a linear layer over its tokens, and an embedding of BMES tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rnnreranker.encode.in_batches import padded
from rnnreranker.encode.words.analysis import NO_TAG, Pieces

ARGUMENTS = ("tokens", "attention", "tags")  # of `TermScorerNetwork.forward`


class TermScorerNetwork(torch.nn.Module):
    """Weights of tokens in their context: W h + b of the transformer's last states h (paper 004, eq. 2 and 3).

    Args:
        transformer: an encoder of transformers.
        bmes: add an embedding of every token's BMES tag (section 3.2.1), which begins as zeros.
    """

    def __init__(self, transformer: Any, bmes: bool) -> None:
        super().__init__()
        size = int(transformer.config.hidden_size)
        self.transformer = transformer
        self.linear = torch.nn.Linear(size, 1)
        torch.nn.init.normal_(self.linear.weight, std=0.02)
        torch.nn.init.zeros_(self.linear.bias)
        self.tags = torch.nn.Embedding(NO_TAG + 1, size, padding_idx=NO_TAG) if bmes else None
        if self.tags is not None:
            torch.nn.init.zeros_(self.tags.weight)

    def forward(self, tokens: torch.Tensor, attention: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        """(B, T) weights of (B, T) tokens; attention: 0 at padding; tags: as in `Pieces`."""
        if self.tags is None:
            states = self.transformer(input_ids=tokens, attention_mask=attention).last_hidden_state
        else:
            embedded = self.transformer.get_input_embeddings()(tokens) + self.tags(tags)
            states = self.transformer(inputs_embeds=embedded, attention_mask=attention).last_hidden_state
        weights: torch.Tensor = self.linear(states).squeeze(-1)
        return weights


def padded_pieces(several: Sequence[Pieces], padding: int) -> dict[str, torch.Tensor]:
    tokens, attention = padded([one.tokens for one in several], padding)
    tags, _ = padded([one.tags for one in several], NO_TAG)
    return {name: torch.from_numpy(part) for name, part in zip(ARGUMENTS, (tokens, attention, tags), strict=True)}
