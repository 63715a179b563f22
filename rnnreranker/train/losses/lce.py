"""The softmax over a positive and the negatives drawn for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.train.losses.base import GroupLoss, PositivesLoss, mean_over

if TYPE_CHECKING:
    import torch


class LceLoss(PositivesLoss, GroupLoss):
    """-log(e^s_p / (e^s_p + sum over negatives of e^s_n)), averaged over positives, which do not compete (LCE)."""

    name = "lce"

    def mean_of_positives(self, scores: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        """Queries without a positive do not count."""
        import torch

        low = torch.finfo(scores.dtype).min / 2  # finite, so that a row without negatives gives no NaN
        scores = torch.where(valid, scores, 0)
        rest = torch.logsumexp(torch.where(valid & ~positive, scores, low), dim=1, keepdim=True)  # (B, 1)
        each = torch.where(positive, torch.nn.functional.softplus(rest - scores), 0)
        count = positive.sum(dim=1)
        return mean_over(each.sum(dim=1) / count.clamp(min=1), count > 0)
