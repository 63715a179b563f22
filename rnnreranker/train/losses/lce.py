"""The softmax over a positive and the negatives drawn for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.train.losses.base import Loss, mean_over

if TYPE_CHECKING:
    import torch


class LceLoss(Loss):
    """-log(e^s_p / (e^s_p + sum over negatives of e^s_n)), averaged over positives, which do not compete (LCE)."""

    name = "lce"
    of_groups = True
    of_targets = False

    def mean_of(
        self, scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """The targets do not count, only what is positive."""
        import torch

        positive = positive & valid
        low = torch.finfo(scores.dtype).min / 2  # finite, so that a row without negatives gives no NaN
        scores = torch.where(valid, scores, 0)
        rest = torch.logsumexp(torch.where(valid & ~positive, scores, low), dim=1, keepdim=True)  # (B, 1)
        each = torch.where(positive, torch.nn.functional.softplus(rest - scores), 0)
        count = positive.sum(dim=1)
        return mean_over(each.sum(dim=1) / count.clamp(min=1), count > 0)
