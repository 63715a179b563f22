"""What losses share: the interface, and sums over the candidates of a query in which padding takes no part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, setting

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class MarginParams(Params):
    """How far apart scores are to be."""

    margin: float = setting(1.0, "between the scores of candidates that are told apart", above=0)


class Loss(ABC):
    """A loss over the candidates of a batch of queries; a subclass writes `mean_of`.

    Args:
        params: of the loss; None = the defaults.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    Params: ClassVar[type[Params]] = Params

    def __init__(self, params: Any = None) -> None:
        self.params: Any = params or self.Params()

    def __call__(
        self, scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """The mean over the queries of a batch, a scalar.

        Args:
            scores: (B, N) float, larger = closer, inverse temperature already multiplied in.
            targets: (B, N) float, probabilities that sum to 1 over the valid candidates of a query.
            positive: (B, N) bool, judged relevant.
            valid: (B, N) bool, False where a row is padded; what stands there, NaN included, must not matter.

        Raises:
            InputError: tensors of different shapes.
        """
        shapes = {tuple(tensor.shape) for tensor in (scores, targets, positive, valid)}
        if len(shapes) != 1 or scores.dim() != 2:
            raise InputError(
                f"scores, targets, positive, valid have shapes {sorted(shapes)}; expected one shape (B, N)"
            )
        return self.mean_of(scores, targets, positive, valid)

    def reads_targets(self) -> bool:
        """Whether the targets count, at its settings."""
        return True

    @abstractmethod
    def mean_of(
        self, scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """What a call returns; all tensors have one shape."""


class GroupLoss(Loss):
    """A loss made for a few candidates, drawn for a positive."""


class BatchLoss(GroupLoss):
    """A loss in which the candidates of the other queries of a batch take part."""


class CosineLoss(GroupLoss):
    """A loss of scores that are cosines; targets are labels in [0, 1], each by itself."""


class PositivesLoss(Loss):
    """A loss in which labels count for what is positive alone; a subclass writes `mean_of_positives`."""

    def reads_targets(self) -> bool:
        """They never count."""
        return False

    def mean_of(
        self, scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor
    ) -> torch.Tensor:
        """Without the targets, and without what is positive and no candidate."""
        return self.mean_of_positives(scores, positive & valid, valid)

    @abstractmethod
    def mean_of_positives(self, scores: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        """What a call returns; all tensors have one shape (B, N), and what is positive is valid."""


def divergence(scores: torch.Tensor, targets: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """KL(targets || softmax(scores)) over the valid candidates, averaged over the queries that have any.

    sum_c y_c (log y_c - log softmax(s)_c), with 0 log 0 = 0.
    """
    import torch

    targets = torch.where(valid, targets, 0)
    each = torch.special.xlogy(targets, targets) - targets * log_shares(scores, valid)  # (B, N)
    return mean_over(each.sum(dim=1), valid.any(dim=1))


def log_shares(scores: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """(B, N): log softmax over the valid candidates, 0 at the others: finite everywhere, and so are its gradients."""
    import torch

    low = torch.finfo(scores.dtype).min / 2  # finite, so that a row without any candidate gives no NaN
    logged = torch.log_softmax(torch.where(valid, scores, low), dim=1)
    return torch.where(valid, logged, 0)


def mean_over(each: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """The mean over the rows that count; 0 where none does."""
    import torch

    return torch.where(counts, each, 0).sum() / counts.sum().clamp(min=1)


def hinge(
    scores: torch.Tensor, upper: torch.Tensor, lower: torch.Tensor, valid: torch.Tensor, margin: float
) -> torch.Tensor:
    """What is missing to the margin between every pair of upper and lower, over the count of valid candidates."""
    import torch

    scores = torch.where(valid, scores, 0)
    width = int(upper.sum(dim=1).max()) if upper.numel() else 0
    if width == 0:
        return scores.sum() * 0.0
    chosen = upper.to(torch.int8).topk(width, dim=1).indices  # (B, P): the columns of the upper ones, then others
    gaps = margin - scores.gather(1, chosen).unsqueeze(2) + scores.unsqueeze(1)  # (B, P, N)
    pairs = upper.gather(1, chosen).unsqueeze(2) & lower.unsqueeze(1)
    each = torch.where(pairs, gaps.clamp(min=0), 0).sum(dim=(1, 2))
    return mean_over(each / valid.sum(dim=1).clamp(min=1), valid.any(dim=1))
