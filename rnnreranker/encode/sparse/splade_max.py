"""SPLADE's pooling by maximum, as a module of sentence-transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn


class SpladeMax(nn.Module):
    """log(1 + relu(max over tokens)) of the logits of every word, without copies of the logits.

    On the processor numpy finds the maxima, in half the time that torch takes; in half precision, which numpy does not
    have or is slow with, as whole numbers of 16 bits: of those above 0, which alone count, the order is the same.
    """

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """The features with `sentence_embedding`, (b, V): 0 where no logit of the text's tokens is positive."""
        logits, lengths = features["token_embeddings"], features["attention_mask"]
        if logits.device.type != "cpu":
            features["sentence_embedding"] = largest(logits, lengths).relu_().log1p_()
            return features
        halves = logits.dtype is not torch.float32
        shown = logits.detach().view(torch.int16) if halves else logits.detach()
        pooled = torch.empty((logits.shape[0], logits.shape[2]), dtype=shown.dtype)
        values, maxima = shown.numpy(), pooled.numpy()
        for row, attention in enumerate(lengths):
            kept = attention.nonzero()[:, 0]
            first, last = int(kept[0]), int(kept[-1]) + 1
            tokens = values[row, first:last] if last - first == len(kept) else values[row, kept.numpy()]
            np.maximum.reduce(tokens, axis=0, out=maxima[row])
        largest_logits = pooled.view(logits.dtype).float() if halves else pooled
        features["sentence_embedding"] = largest_logits.relu_().log1p_()
        return features


def largest(logits: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
    """(b, V) float32: the largest logit of every word over the tokens that count; logits (b, t, V) are changed.

    attention: (b, t), 0 at padding.
    """
    return logits.masked_fill_(attention.unsqueeze(-1) == 0, -torch.inf).amax(dim=1).float()
