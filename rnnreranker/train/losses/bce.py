"""The binary cross-entropy of every candidate by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.train.losses.base import GroupLoss, PositivesLoss, mean_over

if TYPE_CHECKING:
    import torch


class BceLoss(PositivesLoss, GroupLoss):
    """-log sigmoid(s) of positives and -log(1 - sigmoid(s)) of the others, averaged over a query's candidates."""

    name = "bce"

    def mean_of_positives(self, scores: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        """Every candidate counts by itself."""
        import torch

        signed = torch.where(valid, torch.where(positive, -scores, scores), 0)
        each = torch.where(valid, torch.nn.functional.softplus(signed), 0)
        count = valid.sum(dim=1)
        return mean_over(each.sum(dim=1) / count.clamp(min=1), count > 0)
