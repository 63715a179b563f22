"""The cross-entropy of two distributions over a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.train.losses.base import GroupLoss, log_shares, mean_over

if TYPE_CHECKING:
    import torch


class ListNetLoss(GroupLoss):
    """-sum_c y_c log softmax(s)_c (ListNet, top one): `kl` and the entropy of the targets, which has no gradient."""

    name = "listnet"

    def mean_of(
        self, scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """The targets alone count, not what is positive."""
        import torch

        each = -torch.where(valid, targets, 0) * log_shares(scores, valid)
        return mean_over(each.sum(dim=1), valid.any(dim=1))
