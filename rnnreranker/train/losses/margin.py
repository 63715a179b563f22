"""The multi-label margin between positives and all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.train.losses.base import MarginParams, PositivesLoss, hinge

if TYPE_CHECKING:
    import torch


class MarginLoss(PositivesLoss):
    """sum over positives p and others n of max(0, margin - s_p + s_n), divided by the candidates of the query."""

    name = "margin"
    Params = MarginParams

    def mean_of_positives(self, scores: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        return hinge(scores, positive, valid & ~positive, valid, self.params.margin)
