"""The squared error of the cosine distance against hard labels and labels in [0, 1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnnreranker.base.settings import Params, setting
from rnnreranker.train.losses.base import CosineLoss, mean_over

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class DistanceParams(Params):
    """How much labels in [0, 1] count beside hard ones."""

    alpha: float = setting(0.5, "weight of the labels; hard labels have the rest", at_least=0, at_most=1)


class DistanceLoss(CosineLoss):
    """alpha (f + d - 1)^2 + (1 - alpha) (f + l - 1)^2, averaged over a query's candidates (paper 004, eq. 8).

    f = (1 - s) / 2 is the distance of a query and a document whose cosine is s (eq. 6), l is 1 for a positive and 0 for
    another document, d is its degree of relevance, which the paper calls label distribution: a number in [0, 1] by
    itself (eq. 5), that shares no probability with others. So a document with d or l of 1 is drawn to the query, and
    one with 0 is pushed to the opposite direction, f = 1.

    The paper sums where this averages, a factor of the learning rate. It leaves open which documents are paired with a
    query: here they are the candidates of its group. It states alpha 1 for SQuAD and for a cold start, .2 for Natural
    Questions; 0 is LE-None, 1 is the label distribution alone.
    """

    name = "distance"
    Params = DistanceParams

    def reads_targets(self) -> bool:
        """Not where hard labels have all the weight."""
        return bool(self.params.alpha > 0)

    def mean_of(
        self, scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """scores: cosines; targets: labels in [0, 1], which need not sum to 1."""
        import torch

        relevance = 1 - torch.where(valid, (1 - scores) / 2, 1)  # 1 - f
        labels = torch.where(valid, targets, 0)
        hard = (positive & valid).to(scores.dtype)
        each = self.params.alpha * (relevance - labels) ** 2 + (1 - self.params.alpha) * (relevance - hard) ** 2
        count = valid.sum(dim=1)
        return mean_over(each.sum(dim=1) / count.clamp(min=1), count > 0)
