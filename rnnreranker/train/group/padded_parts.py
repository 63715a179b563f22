"""Tokens of texts in parts of about as many, padding included, so that little of a forward pass is padding."""

from __future__ import annotations

from collections.abc import Iterator

import torch

TOKENS = {"cpu": 2**11, "cuda": 2**17}  # padded tokens of the texts that go through the model together


def padded_parts(features: dict[str, torch.Tensor]) -> Iterator[dict[str, torch.Tensor]]:
    """The tensors (n, t) of texts that stand in order of their lengths, a part of the texts at a time, (c, longest).

    features: with `attention_mask`; texts are padded on the right.
    """
    lengths = features["attention_mask"].sum(dim=1).tolist()
    most = TOKENS[features["attention_mask"].device.type]
    start = 0
    while start < len(lengths):
        stop = start + 1
        while stop < len(lengths) and max(lengths[start : stop + 1]) * (stop + 1 - start) <= most:
            stop += 1
        longest = max(lengths[start:stop])
        yield {name: value[start:stop, :longest] for name, value in features.items()}
        start = stop
