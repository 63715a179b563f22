"""The similarities that late interaction is trained with, with gradients."""

from __future__ import annotations

from typing import Literal

import torch

Similarity = Literal["maxsim", "l2"]


def late_scores(
    queries: torch.Tensor,
    asked: torch.Tensor,
    documents: torch.Tensor,
    real: torch.Tensor,
    similarity: Similarity = "maxsim",
) -> torch.Tensor:
    """(B, U) float32: every query with every document.

    maxsim: sum over a query's tokens of max_j q_i . d_j, as `rnn.maxsim.maxsim`; 0 for a document without
    tokens. l2: sum of max(max_j -|q_i - d_j|^2, -|q_i|^2), where a document has a vector of zeros besides its tokens,
    as padding is in the program of paper 002: with vectors of length 1, 2 q_i . d_j - 2, and never below -1.

    Args:
        queries: (B, q, d) float32; asked: (B, q) bool, their tokens that count.
        documents: (U, t, d) float32; real: (U, t) bool, their tokens. What is not real has no part, NaN included.
        similarity: which of the two.
    """
    documents = torch.where(real.unsqueeze(2), documents, 0)
    products = torch.einsum("bqd,utd->buqt", queries, documents)
    low = torch.finfo(products.dtype).min
    if similarity == "l2":
        squares = (documents**2).sum(dim=2)
        floor = -(queries**2).sum(dim=2).unsqueeze(1)  # (B, 1, q)
        products = 2 * products - squares[None, :, None, :] + floor.unsqueeze(3)
        best = products.masked_fill(~real[None, :, None, :], low).max(dim=3).values
        best = torch.maximum(best, floor)
    else:
        best = products.masked_fill(~real[None, :, None, :], low).max(dim=3).values
        best = torch.where(real.any(dim=1)[None, :, None], best, 0)
    return torch.where(asked.unsqueeze(1), best, 0).sum(dim=2)
