"""The margin between the cosine distances of positives and of other documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnnreranker.train.losses.base import BatchLoss, CosineLoss, MarginParams, PositivesLoss, hinge

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class TripletParams(MarginParams):
    """How much farther than a positive another document is to be; cosines lie between -1 and 1."""

    margin: float = 0.5


class TripletLoss(PositivesLoss, BatchLoss, CosineLoss):
    """max(0, D(q, p) - D(q, n) + margin) with D = 1 - cosine, over positives p and others n, divided by the candidates.

    The loss of F-EBR (Huang et al., KDD 2020) as we remember it, not read from that paper: a sum there, which is a
    factor of the learning rate. Others are the negatives of a query and the candidates of the other queries of its
    batch. Paper 004 (4.2), which has F-EBR as a baseline, states neither loss nor margin.
    """

    name = "triplet"
    Params = TripletParams

    def mean_of_positives(self, scores: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        """scores: cosines."""
        return hinge(scores, positive, valid & ~positive, valid, self.params.margin)
