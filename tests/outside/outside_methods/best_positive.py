"""A loss that asks one positive of each query to stand out: the one that already scores highest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnnreranker.plugins import Loss, Params, log_shares, mean_over, setting

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class BestPositiveParams(Params):
    """Settings of BestPositive."""

    sharpness: float = setting(1.0, "what scores are multiplied by before their softmax", above=0)


class BestPositive(Loss):
    """Minus the log share of the positive with the highest score, averaged over the queries that have a positive."""

    name = "best-positive"
    Params = BestPositiveParams

    def __call__(
        self, scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """See the class."""
        import torch

        shares = log_shares(scores * self.params.sharpness, valid)
        best = torch.where(positive & valid, shares, -torch.inf).amax(dim=1)
        counts = torch.isfinite(best)
        return mean_over(-torch.where(counts, best, 0), counts)
