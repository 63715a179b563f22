"""The list-wise divergence from the target distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnnreranker.base.settings import Params, setting
from rnnreranker.train.losses.base import Loss, divergence

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class KlParams(Params):
    """What targets go through before."""

    raise_positives: bool = setting(False, "positives raised to the highest target of their query")


class KlLoss(Loss):
    """KL(targets || softmax(scores)), averaged over the queries (001, Eq. 3).

    Raised, the positives' targets are first the highest of their query, and all are scaled to sum to 1 again: where
    targets are the softmax of a teacher's scores, positives have the score of its favourite (paper 002's program).
    """

    name = "kl"
    Params = KlParams

    def mean_of(
        self, scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """See `divergence`; what is positive counts where it is raised."""
        if self.params.raise_positives:
            import torch

            highest = torch.where(valid, targets, 0).amax(dim=1, keepdim=True)
            targets = torch.where(valid, torch.where(positive, highest, targets), 0)
            targets = targets / targets.sum(dim=1, keepdim=True).clamp(min=torch.finfo(targets.dtype).tiny)
        return divergence(scores, targets, valid)
