"""The negative log share of the positives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.train.losses.base import PositivesLoss, log_shares, mean_over

if TYPE_CHECKING:
    import torch


class CrossEntropyLoss(PositivesLoss):
    """-log softmax(scores) of the positives, averaged over a query's positives, then over queries that have any."""

    name = "cross-entropy"

    def mean_of_positives(self, scores: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        """Queries without a positive do not count."""
        import torch

        each = torch.where(positive, log_shares(scores, valid), 0)
        count = positive.sum(dim=1)
        return mean_over(-each.sum(dim=1) / count.clamp(min=1), count > 0)
