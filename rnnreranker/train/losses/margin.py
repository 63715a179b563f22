"""The multi-label margin between positives and all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.train.losses.base import Loss, MarginParams, hinge

if TYPE_CHECKING:
    import torch


class MarginLoss(Loss):
    """sum over positives p and others n of max(0, margin - s_p + s_n), divided by the candidates of the query."""

    name = "margin"
    Params = MarginParams
    of_targets = False

    def mean_of(
        self, scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """The targets do not count, only what is positive."""
        return hinge(scores, positive & valid, valid & ~positive, valid, self.params.margin)
