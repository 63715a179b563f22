"""Losses of training, over the candidates of a batch of queries; each class with a name is one.

Sums run over the candidates of a query, without padding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rnnreranker.base.settings import Params, setting

if TYPE_CHECKING:
    from torch import Tensor


LOW, TINY = -1.7014118346046923e38, 1.1754943508222875e-38  # half the lowest float32, and the smallest normal one


class Loss(ABC):
    """A loss over the candidates of a batch of queries.

    Attributes:
        needs: {"teacher"} if candidates without probability are ignored.
        over_batch: whether candidates of the other queries of a batch count.
        of_cosines: whether it takes cosines, and labels in [0, 1] as targets.
        targets: whether it reads targets.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    over_batch: ClassVar[bool] = False
    of_cosines: ClassVar[bool] = False
    targets: ClassVar[bool] = True
    Params: ClassVar[type[Params]] = Params

    def __init__(self, params: Any = None) -> None:
        self.params: Any = params or self.Params()

    @abstractmethod
    def __call__(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        """The mean over the queries of a batch, a scalar.

        Args:
            scores: (B, N) float, larger = closer, times the inverse temperature.
            targets: (B, N) float, sum to 1 over the valid candidates of a query.
            positive: (B, N) bool, judged relevant; all are valid.
            valid: (B, N) bool, False at padding, whose values have no effect, NaN included.
        """


@dataclass(frozen=True)
class KlParams(Params):
    raise_positives: bool = setting(False, "positives raised to the highest target of their query")


class KlLoss(Loss):
    """KL(targets || softmax(scores)), averaged over the queries (001, Eq. 3): ListNet and a constant.

    raise_positives sets positives to the highest target of their query, then normalises again (paper 002's program).
    """

    name = "kl"
    Params = KlParams

    def __call__(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        if self.params.raise_positives:
            highest = targets.where(valid, 0).amax(dim=1, keepdim=True)
            targets = highest.where(positive, targets).where(valid, 0)
            targets = targets / targets.sum(dim=1, keepdim=True).clamp(min=TINY)
        return divergence(scores, targets, valid)


class CrossEntropyLoss(Loss):
    """-log softmax(scores) of the positives, averaged over a query's positives, then over queries that have any."""

    name = "cross-entropy"
    targets = False

    def __call__(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        return _over(-log_shares(scores, valid), positive)


class LceLoss(Loss):
    """-log(e^s_p / (e^s_p + sum over negatives of e^s_n)), averaged over the positives of queries with any (LCE)."""

    name = "lce"
    targets = False

    def __call__(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        rest = scores.where(valid & ~positive, LOW).logsumexp(dim=1, keepdim=True)  # (B, 1)
        return _over(_softplus(rest - scores.where(valid, 0)), positive)


class InfoNceLoss(LceLoss):
    """As `lce`, with candidates of the other queries of a batch as negatives (InfoNCE)."""

    name = "info-nce"
    over_batch = True


class BceLoss(Loss):
    """-log sigmoid(s) of positives and -log(1 - sigmoid(s)) of the others, averaged over a query's candidates."""

    name = "bce"
    targets = False

    def __call__(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        return _over(_softplus((-scores).where(positive, scores).where(valid, 0)), valid)


@dataclass(frozen=True)
class DistanceParams(Params):
    alpha: float = setting(0.5, "weight of the labels; hard labels have the rest", at_least=0, at_most=1)


class DistanceLoss(Loss):
    """alpha (f + d - 1)^2 + (1 - alpha) (f + l - 1)^2, averaged over a query's candidates (paper 004, eq. 8).

    f = (1 - s) / 2 for the cosine s (eq. 6); l is 1 for positives, else 0; d in [0, 1] is the label (eq. 5). The paper
    sums, a factor of the learning rate. It states alpha 1 for SQuAD and cold starts, .2 for Natural Questions.
    """

    name = "distance"
    of_cosines = True
    Params = DistanceParams

    def __call__(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        alpha, relevance = self.params.alpha, 1 - ((1 - scores) / 2).where(valid, 1)  # 1 - f
        soft = (relevance - targets.where(valid, 0)) ** 2
        return _over(alpha * soft + (1 - alpha) * (relevance - positive.to(scores.dtype)) ** 2, valid)


class MarginMseLoss(Loss):
    """((s_p - s_n) - (log y_p - log y_n))^2, averaged over pairs of a positive p and another candidate n.

    Softmax targets have the margins of their teacher's scores. Candidates without probability do not count.
    """

    name = "margin-mse"
    needs = frozenset({"teacher"})

    def __call__(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        known = valid & (targets.where(valid, 0) > 0)
        gaps = scores.where(known, 0) - targets.where(known, 1).log()  # a pair's error is the difference of two of them
        differences, pairs = of_pairs(gaps, known & positive, known & ~positive)
        return _over(differences.flatten(1) ** 2, pairs.flatten(1))


@dataclass(frozen=True)
class MarginParams(Params):
    """Settings of the losses margin and multi-tier."""

    margin: float = setting(1.0, "between the scores of two candidates", above=0)


class MarginLoss(Loss):
    """sum over positives p and others n of max(0, margin - s_p + s_n), divided by the candidates of the query."""

    name = "margin"
    targets = False
    Params = MarginParams

    def __call__(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        return hinge(scores, positive, valid & ~positive, valid, self.params.margin)


@dataclass(frozen=True)
class TripletParams(MarginParams):
    """Settings of the loss triplet, of cosines."""

    margin: float = 0.5


class TripletLoss(MarginLoss):
    """max(0, D(q, p) - D(q, n) + margin) with D = 1 - cosine, over positives p and others n, divided by the candidates.

    F-EBR's loss (Huang et al., KDD 2020) from memory; paper 004 (4.2) states neither loss nor margin.
    """

    name = "triplet"
    over_batch = True
    of_cosines = True
    Params = TripletParams


class MultiTierLoss(MarginLoss):
    """The multi-label margin twice: positives over all others, and others with probability over those without.

    Without soft positives it equals the loss `margin`.
    """

    name = "multi-tier"
    targets = True

    def __call__(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        first, soft = super().__call__(scores, targets, positive, valid), valid & ~positive & (targets > 0)
        return first + hinge(scores, soft, valid & ~positive & ~soft, valid, self.params.margin)


def divergence(scores: Tensor, targets: Tensor, valid: Tensor) -> Tensor:
    """KL(targets || softmax(scores)) over the valid candidates, averaged over queries with any; 0 log 0 = 0."""
    targets = targets.where(valid, 0)
    each = targets.xlogy(targets) - targets * log_shares(scores, valid)  # (B, N)
    return mean_over(each.sum(dim=1), valid.any(dim=1))


def log_shares(scores: Tensor, valid: Tensor) -> Tensor:
    """(B, N): log softmax over the valid candidates, 0 at the others; values and gradients are finite."""
    return scores.where(valid, LOW).log_softmax(dim=1).where(valid, 0)


def _softplus(values: Tensor) -> Tensor:
    import torch

    return torch.nn.functional.softplus(values)


def mean_over(each: Tensor, counts: Tensor) -> Tensor:
    """Mean over the rows that count; 0 if none does."""
    return each.where(counts, 0).sum() / counts.sum().clamp(min=1)


def _over(each: Tensor, chosen: Tensor) -> Tensor:
    """Mean over the chosen candidates of each query, then over queries that have any."""
    count = chosen.sum(dim=1)
    return mean_over(each.where(chosen, 0).sum(dim=1) / count.clamp(min=1), count > 0)


def hinge(scores: Tensor, upper: Tensor, lower: Tensor, valid: Tensor, margin: float) -> Tensor:
    """Sum of max(0, margin - s_u + s_l) over pairs of upper and lower, over the count of valid candidates."""
    differences, pairs = of_pairs(scores.where(valid, 0), upper, lower)
    each = (margin - differences).clamp(min=0).where(pairs, 0).sum(dim=(1, 2))
    return mean_over(each / valid.sum(dim=1).clamp(min=1), valid.any(dim=1))


def of_pairs(values: Tensor, upper: Tensor, lower: Tensor) -> tuple[Tensor, Tensor]:
    """(B, P, N) both: differences of values, upper - lower, and whether they are of an upper and a lower candidate."""
    chosen = upper.char().topk(int(upper.sum(dim=1).max()), dim=1).indices  # (B, P): the upper ones, then others
    differences = values.gather(1, chosen).unsqueeze(2) - values.unsqueeze(1)
    return differences, upper.gather(1, chosen).unsqueeze(2) & lower.unsqueeze(1)
