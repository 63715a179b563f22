"""The list-wise divergence from the target distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.train.losses.base import Loss, divergence

if TYPE_CHECKING:
    import torch


class KlLoss(Loss):
    """KL(targets || softmax(scores)), averaged over the queries (001, Eq. 3)."""

    name = "kl"

    def mean_of(
        self, scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """See `divergence`; the targets alone count, not what is positive."""
        return divergence(scores, targets, valid)
