"""The multi-label margin in two tiers: positives, others with probability, the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.train.losses.base import Loss, MarginParams, hinge

if TYPE_CHECKING:
    import torch


class MultiTierLoss(Loss):
    """The multi-label margin twice: positives over all others, and others with probability over those without.

    So the judged documents stand above the soft positives, and these above the rest, each by a margin. Where no other
    document has probability it equals the loss `margin`.
    """

    name = "multi-tier"
    Params = MarginParams

    def mean_of(
        self, scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """The sum of the two margins."""
        others = valid & ~positive
        first = hinge(scores, positive & valid, others, valid, self.params.margin)
        return first + hinge(scores, others & (targets > 0), others & (targets <= 0), valid, self.params.margin)
