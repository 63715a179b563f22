"""The negative log share of the positives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.train.losses.base import Loss, log_shares, mean_over

if TYPE_CHECKING:
    import torch


class CrossEntropyLoss(Loss):
    """-log softmax(scores) of the positives, averaged over a query's positives, then over queries that have any."""

    name = "cross-entropy"
    of_targets = False

    def mean_of(
        self, scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """The targets do not count, only what is positive."""
        import torch

        positive = positive & valid
        each = torch.where(positive, log_shares(scores, valid), 0)
        count = positive.sum(dim=1)
        return mean_over(-each.sum(dim=1) / count.clamp(min=1), count > 0)
