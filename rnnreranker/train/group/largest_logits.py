"""The largest logit of every word of a text, with a backward pass that looks at the words that count."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

AT_ONCE = {"cpu": 2**20, "cuda": 2**27}  # logits held at a time: on a CPU what its cache holds


class _Largest(torch.autograd.Function):
    """See `largest_logits`."""

    @staticmethod
    def forward(ctx: Any, hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Block after block of words; no logit is kept but the largest."""
        largest = hidden.new_empty((hidden.shape[0], weight.shape[0]))
        step = max(64, AT_ONCE[hidden.device.type] // (hidden.shape[0] * hidden.shape[1]))
        for start in range(0, weight.shape[0], step):
            block = slice(start, start + step)
            logits = torch.nn.functional.linear(hidden, weight[block], bias[block])
            largest[:, block] = logits.amax(dim=1)
        ctx.save_for_backward(hidden, weight)
        return largest

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Only words with a gradient, those whose weight is above 0, are looked at again, for their token."""
        hidden, weight = ctx.saved_tensors
        (gradient,) = gradients
        of_hidden, of_weight = torch.zeros_like(hidden), torch.zeros_like(weight)
        for row, own in enumerate(gradient):
            words = own.nonzero()[:, 0]
            if len(words):
                chosen = weight[words]  # (n, h)
                tokens = (hidden[row] @ chosen.T).argmax(dim=0)
                share = own[words].unsqueeze(1)
                of_hidden[row].index_add_(0, tokens, share * chosen)
                of_weight.index_add_(0, words, share * hidden[row, tokens])
        return of_hidden, of_weight, gradient.sum(dim=0)


def largest_logits(
    hidden: torch.Tensor, attention: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """(b, V): max over tokens of <hidden, weight> + bias.

    The logits of all tokens are neither kept nor given gradients, nearly all of which are 0: that takes a fraction of
    the time, and memory for no more than the largest.

    Args:
        hidden: (b, T, h) what the head of a masked-language model is given; attention: (b, T), 0 at padding, the first
            token of every text is none.
        weight: (V, h) and bias: (V,) of the head.
    """
    padded = torch.where(attention.unsqueeze(2) > 0, hidden, hidden[:, :1])  # a token that is there changes no maximum
    largest: torch.Tensor = _Largest.apply(padded, weight, bias)
    return largest


@contextlib.contextmanager
def skipped(head: torch.nn.Linear) -> Iterator[None]:
    """A block in which a layer gives back what it is given."""
    head.forward = lambda given: given  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        del head.forward
