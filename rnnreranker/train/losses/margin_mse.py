"""The squared error of margins against a teacher's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.train.losses.base import GroupLoss, mean_over

if TYPE_CHECKING:
    import torch


class MarginMseLoss(GroupLoss):
    """((s_p - s_n) - (log y_p - log y_n))^2, averaged over the pairs of a positive p and another candidate n.

    Targets that are the softmax of a teacher's scores give its margins, as the logarithms differ from the scores by a
    constant of the query. Candidates without probability have no margin and take no part.
    """

    name = "margin-mse"
    needs = frozenset({"teacher"})

    def mean_of(
        self, scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """Queries without a pair do not count."""
        import torch

        known = valid & (torch.where(valid, targets, 0) > 0)
        logs = torch.log(torch.where(known, targets, 1))
        gaps = torch.where(known, scores, 0) - logs  # a pair's error is the difference of two of them
        pairs = (known & positive).unsqueeze(2) & (known & ~positive).unsqueeze(1)
        errors = torch.where(pairs, gaps.unsqueeze(2) - gaps.unsqueeze(1), 0) ** 2
        count = pairs.sum(dim=(1, 2))
        return mean_over(errors.sum(dim=(1, 2)) / count.clamp(min=1), count > 0)
