"""Losses of training, over the candidates of a batch of queries; a class with a name is one.

Sums run over the candidates of a query; padding has no part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, setting

if TYPE_CHECKING:
    from torch import Tensor


class Loss(ABC):
    """A loss over the candidates of a batch of queries; a subclass writes `mean_of`.

    Attributes:
        needs: {"teacher"} where a candidate without probability has no part.
        over_batch: whether the candidates of the other queries of a batch have a part.
        of_cosines: whether scores are cosines, and targets labels in [0, 1], each by itself.
        targets: whether it reads the targets; else only what is positive.

    Args:
        params: of the loss; None = the defaults.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    over_batch: ClassVar[bool] = False
    of_cosines: ClassVar[bool] = False
    targets: ClassVar[bool] = True
    Params: ClassVar[type[Params]] = Params

    def __init__(self, params: Any = None) -> None:
        self.params: Any = params or self.Params()

    def __call__(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        """The mean over the queries of a batch, a scalar.

        Args:
            scores: (B, N) float, larger = closer, inverse temperature already multiplied in.
            targets: (B, N) float, probabilities that sum to 1 over the valid candidates of a query.
            positive: (B, N) bool, judged relevant.
            valid: (B, N) bool, False at padding, whose values have no effect, NaN included.

        Raises:
            InputError: tensors of different shapes.
        """
        shapes = {tuple(tensor.shape) for tensor in (scores, targets, positive, valid)}
        if len(shapes) != 1 or scores.dim() != 2:
            raise InputError(
                f"scores, targets, positive, valid have shapes {sorted(shapes)}; expected one shape (B, N)"
            )
        return self.mean_of(scores, targets, positive & valid, valid)

    def reads_targets(self) -> bool:
        """Whether the targets count, at its settings."""
        return self.targets

    @abstractmethod
    def mean_of(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        """What a call returns; all tensors have one shape, and what is positive is valid."""


@dataclass(frozen=True)
class KlParams(Params):
    """Settings of the loss kl."""

    raise_positives: bool = setting(False, "positives raised to the highest target of their query")


class KlLoss(Loss):
    """KL(targets || softmax(scores)), averaged over the queries (001, Eq. 3).

    Raised, the positives' targets are first the highest of their query, and all are scaled to sum to 1 again: where
    targets are the softmax of a teacher's scores, positives have the score of its favourite (paper 002's program).
    """

    name = "kl"
    Params = KlParams

    def mean_of(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        if self.params.raise_positives:
            import torch

            highest = targets.where(valid, 0).amax(dim=1, keepdim=True)
            targets = highest.where(positive, targets).where(valid, 0)
            targets = targets / targets.sum(dim=1, keepdim=True).clamp(min=torch.finfo(targets.dtype).tiny)
        return divergence(scores, targets, valid)


class ListNetLoss(Loss):
    """-sum_c y_c log softmax(s)_c (ListNet, top one): `kl` and the entropy of the targets, which has no gradient."""

    name = "listnet"

    def mean_of(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        return mean_over((-targets.where(valid, 0) * log_shares(scores, valid)).sum(dim=1), valid.any(dim=1))


class CrossEntropyLoss(Loss):
    """-log softmax(scores) of the positives, averaged over a query's positives, then over queries that have any."""

    name = "cross-entropy"
    targets = False

    def mean_of(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        return _over(-log_shares(scores, valid), positive)


class LceLoss(Loss):
    """-log(e^s_p / (e^s_p + sum over negatives of e^s_n)), averaged over positives, which do not compete (LCE).

    Queries without a positive do not count.
    """

    name = "lce"
    targets = False

    def mean_of(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        rest = scores.where(valid & ~positive, _low(scores)).logsumexp(dim=1, keepdim=True)  # (B, 1)
        return _over(_softplus(rest - scores.where(valid, 0)), positive)


class InfoNceLoss(LceLoss):
    """As `lce`, where the candidates of the other queries of a batch are negatives too (InfoNCE)."""

    name = "info-nce"
    over_batch = True


class BceLoss(Loss):
    """-log sigmoid(s) of positives and -log(1 - sigmoid(s)) of the others, averaged over a query's candidates."""

    name = "bce"
    targets = False

    def mean_of(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        return _over(_softplus((-scores).where(positive, scores).where(valid, 0)), valid)


@dataclass(frozen=True)
class DistanceParams(Params):
    """Settings of the loss distance."""

    alpha: float = setting(0.5, "weight of the labels; hard labels have the rest", at_least=0, at_most=1)


class DistanceLoss(Loss):
    """alpha (f + d - 1)^2 + (1 - alpha) (f + l - 1)^2, averaged over a query's candidates (paper 004, eq. 8).

    f = (1 - s) / 2 is the distance of a query and a document whose cosine is s (eq. 6), l is 1 for a positive and 0 for
    another document, d is its degree of relevance, a number in [0, 1] by itself (eq. 5).

    The paper sums where this averages, a factor of the learning rate. It leaves open which documents are paired with a
    query: here they are the candidates of its group. It states alpha 1 for SQuAD and for a cold start, .2 for Natural
    Questions; 0 is LE-None, 1 is the label distribution alone.
    """

    name = "distance"
    of_cosines = True
    Params = DistanceParams

    def reads_targets(self) -> bool:
        """Not where hard labels have all the weight."""
        return bool(self.params.alpha > 0)

    def mean_of(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        alpha, relevance = self.params.alpha, 1 - ((1 - scores) / 2).where(valid, 1)  # 1 - f
        soft = (relevance - targets.where(valid, 0)) ** 2
        return _over(alpha * soft + (1 - alpha) * (relevance - positive.to(scores.dtype)) ** 2, valid)


class MarginMseLoss(Loss):
    """((s_p - s_n) - (log y_p - log y_n))^2, averaged over the pairs of a positive p and another candidate n.

    Targets that are the softmax of a teacher's scores give its margins, as the logarithms differ from the scores by a
    constant of the query. Candidates without probability have no part, nor do queries without a pair.
    """

    name = "margin-mse"
    needs = frozenset({"teacher"})

    def mean_of(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        known = valid & (targets.where(valid, 0) > 0)
        gaps = scores.where(known, 0) - targets.where(known, 1).log()  # a pair's error is the difference of two of them
        pairs = (known & positive).unsqueeze(2) & (known & ~positive).unsqueeze(1)
        errors = (gaps.unsqueeze(2) - gaps.unsqueeze(1)).where(pairs, 0) ** 2
        count = pairs.sum(dim=(1, 2))
        return mean_over(errors.sum(dim=(1, 2)) / count.clamp(min=1), count > 0)


@dataclass(frozen=True)
class MarginParams(Params):
    """Settings of the losses margin and multi-tier."""

    margin: float = setting(1.0, "between the scores of two candidates", above=0)


class MarginLoss(Loss):
    """sum over positives p and others n of max(0, margin - s_p + s_n), divided by the candidates of the query."""

    name = "margin"
    targets = False
    Params = MarginParams

    def mean_of(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        return hinge(scores, positive, valid & ~positive, valid, self.params.margin)


@dataclass(frozen=True)
class TripletParams(MarginParams):
    """Settings of the loss triplet; cosines lie between -1 and 1."""

    margin: float = 0.5


class TripletLoss(MarginLoss):
    """max(0, D(q, p) - D(q, n) + margin) with D = 1 - cosine, over positives p and others n, divided by the candidates.

    The loss of F-EBR (Huang et al., KDD 2020) as we remember it, not read from that paper: a sum there, which is a
    factor of the learning rate. Others are the negatives of a query and the candidates of the other queries of its
    batch. Paper 004 (4.2), which has F-EBR as a baseline, states neither loss nor margin.
    """

    name = "triplet"
    over_batch = True
    of_cosines = True
    Params = TripletParams


class MultiTierLoss(Loss):
    """The multi-label margin twice: positives over all others, and others with probability over those without.

    So the judged documents are above the soft positives, and these above the rest, each by a margin. Where no other
    document has probability it equals the loss `margin`.
    """

    name = "multi-tier"
    Params = MarginParams

    def mean_of(self, scores: Tensor, targets: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        others = valid & ~positive
        first = hinge(scores, positive, others, valid, self.params.margin)
        return first + hinge(scores, others & (targets > 0), others & (targets <= 0), valid, self.params.margin)


def divergence(scores: Tensor, targets: Tensor, valid: Tensor) -> Tensor:
    """KL(targets || softmax(scores)) over the valid candidates, averaged over the queries that have any.

    sum_c y_c (log y_c - log softmax(s)_c), with 0 log 0 = 0.
    """
    targets = targets.where(valid, 0)
    each = targets.xlogy(targets) - targets * log_shares(scores, valid)  # (B, N)
    return mean_over(each.sum(dim=1), valid.any(dim=1))


def log_shares(scores: Tensor, valid: Tensor) -> Tensor:
    """(B, N): log softmax over the valid candidates, 0 at the others: finite everywhere, and so are its gradients."""
    return scores.where(valid, _low(scores)).log_softmax(dim=1).where(valid, 0)


def _low(scores: Tensor) -> float:
    """A low score that is finite, so that a row without any candidate gives no NaN."""
    import torch

    return torch.finfo(scores.dtype).min / 2


def _softplus(values: Tensor) -> Tensor:
    import torch

    return torch.nn.functional.softplus(values)


def mean_over(each: Tensor, counts: Tensor) -> Tensor:
    """The mean over the rows that count; 0 where none does."""
    return each.where(counts, 0).sum() / counts.sum().clamp(min=1)


def _over(each: Tensor, chosen: Tensor) -> Tensor:
    """The mean over what is chosen of each query, then over queries that have any."""
    count = chosen.sum(dim=1)
    return mean_over(each.where(chosen, 0).sum(dim=1) / count.clamp(min=1), count > 0)


def hinge(scores: Tensor, upper: Tensor, lower: Tensor, valid: Tensor, margin: float) -> Tensor:
    """What is missing to the margin between every pair of upper and lower, over the count of valid candidates."""
    import torch

    scores = scores.where(valid, 0)
    width = int(upper.sum(dim=1).max()) if upper.numel() else 0
    if width == 0:
        return scores.sum() * 0.0
    chosen = upper.to(torch.int8).topk(width, dim=1).indices  # (B, P): the columns of the upper ones, then others
    gaps = margin - scores.gather(1, chosen).unsqueeze(2) + scores.unsqueeze(1)  # (B, P, N)
    pairs = upper.gather(1, chosen).unsqueeze(2) & lower.unsqueeze(1)
    each = gaps.clamp(min=0).where(pairs, 0).sum(dim=(1, 2))
    return mean_over(each / valid.sum(dim=1).clamp(min=1), valid.any(dim=1))
