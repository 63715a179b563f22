"""SPLADE's pooling by maximum, as a module of sentence-transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class SpladeMax(nn.Module):
    """log(1 + relu(max over tokens)) of the logits of every word, without copies of the logits."""

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """The features with `sentence_embedding`, (b, V): 0 where no logit of the text's tokens is positive."""
        logits, lengths = features["token_embeddings"], features["attention_mask"]
        pooled = torch.empty((logits.shape[0], logits.shape[2]), dtype=logits.dtype)
        for row, attention in enumerate(lengths):
            kept = attention.nonzero()[:, 0]
            first, last = int(kept[0]), int(kept[-1]) + 1
            tokens = logits[row, first:last] if last - first == len(kept) else logits[row, kept]
            torch.amax(tokens, dim=0, out=pooled[row])
        features["sentence_embedding"] = pooled.relu_().log1p_()
        return features
