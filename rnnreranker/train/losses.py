"""List-wise losses over the candidates of a query; padding takes no part in any of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rnnreranker.errors import InputError

if TYPE_CHECKING:
    import torch

LOSSES = ("kl", "cross-entropy", "margin", "multi-tier")


def ranking_loss(
    name: str,
    scores: torch.Tensor,
    targets: torch.Tensor,
    positive: torch.Tensor,
    valid: torch.Tensor,
    margin: float = 1.0,
) -> torch.Tensor:
    """The loss of a batch: the mean over its queries, a scalar.

    Args:
        name: "kl", "cross-entropy", "margin" or "multi-tier".
        scores: (B, N) float, larger = closer, inverse temperature already multiplied in.
        targets: (B, N) float, probabilities that sum to 1 over the valid candidates of a query.
        positive: (B, N) bool, judged relevant.
        valid: (B, N) bool, False where a row is padded; what stands there, NaN included, does not matter.
        margin: of "margin" and "multi-tier".

    Raises:
        InputError: an unknown loss, tensors of different shapes.
    """
    losses: dict[str, Callable[[], torch.Tensor]] = {
        "kl": lambda: listwise_kl(scores, targets, valid),
        "cross-entropy": lambda: cross_entropy(scores, positive, valid),
        "margin": lambda: multilabel_margin(scores, positive, valid, margin),
        "multi-tier": lambda: multi_tier(scores, targets, positive, valid, margin),
    }
    if name not in losses:
        raise InputError(f"loss {name}: expected one of {', '.join(LOSSES)}")
    shapes = {tuple(tensor.shape) for tensor in (scores, targets, positive, valid)}
    if len(shapes) != 1 or scores.dim() != 2:
        raise InputError(f"scores, targets, positive, valid have shapes {sorted(shapes)}; expected one shape (B, N)")
    return losses[name]()


def listwise_kl(scores: torch.Tensor, targets: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """KL(targets || softmax(scores)) over the valid candidates, averaged over the queries that have any (001, Eq. 3).

    sum_c y_c (log y_c - log softmax(s)_c), with 0 log 0 = 0.
    """
    import torch

    log_shares = _log_softmax(scores, valid)
    targets = torch.where(valid, targets, 0)
    each = torch.special.xlogy(targets, targets) - targets * log_shares  # (B, N)
    return _mean(each.sum(dim=1), valid.any(dim=1))


def cross_entropy(scores: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """-log softmax(scores) of the positives, averaged over a query's positives, then over queries that have any."""
    import torch

    positive = positive & valid
    log_shares = torch.where(positive, _log_softmax(scores, valid), 0)
    count = positive.sum(dim=1)
    return _mean(-log_shares.sum(dim=1) / count.clamp(min=1), count > 0)


def multilabel_margin(
    scores: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor, margin: float = 1.0
) -> torch.Tensor:
    """sum over positives p and others n of max(0, margin - s_p + s_n), divided by the candidates of the query."""
    return _hinge(scores, positive & valid, valid & ~positive, valid, margin)


def multi_tier(
    scores: torch.Tensor, targets: torch.Tensor, positive: torch.Tensor, valid: torch.Tensor, margin: float = 1.0
) -> torch.Tensor:
    """The multi-label margin twice: positives over all others, and others with probability over those without.

    So the judged documents stand above the soft positives, and these above the rest, each by a margin. Where no other
    document has probability it equals `multilabel_margin`.
    """
    second = valid & ~positive & (targets > 0)
    rest = valid & ~positive & (targets <= 0)
    return multilabel_margin(scores, positive, valid, margin) + _hinge(scores, second, rest, valid, margin)


def neutrality_divergence(
    scores: torch.Tensor, neutrality: torch.Tensor, valid: torch.Tensor, cutoff: int = 100
) -> torch.Tensor:
    """KL(softmax(neutrality) || softmax(scores)) over the `cutoff` candidates with the highest scores (001, fairness).

    Args:
        scores, valid: as for `ranking_loss`.
        neutrality: (B, N) float in [0, 1], see `neutrality`; larger = more neutral.
        cutoff: candidates of each query that count.
    """
    import torch

    low = torch.finfo(scores.dtype).min / 2
    masked = torch.where(valid, scores, low)
    places = masked.topk(min(cutoff, scores.shape[1]), dim=1).indices
    counted = valid.gather(1, places)
    wanted = _log_softmax(neutrality.gather(1, places), counted).exp() * counted
    return listwise_kl(masked.gather(1, places), wanted, counted)


def _hinge(
    scores: torch.Tensor, upper: torch.Tensor, lower: torch.Tensor, valid: torch.Tensor, margin: float
) -> torch.Tensor:
    """What is missing to the margin between every pair of upper and lower, over the count of valid candidates."""
    import torch

    scores = torch.where(valid, scores, 0)
    width = int(upper.sum(dim=1).max()) if upper.numel() else 0
    if width == 0:
        return scores.sum() * 0.0
    chosen = upper.to(torch.int8).topk(width, dim=1).indices  # (B, P): the places of the upper ones, then others
    gaps = margin - scores.gather(1, chosen).unsqueeze(2) + scores.unsqueeze(1)  # (B, P, N)
    pairs = upper.gather(1, chosen).unsqueeze(2) & lower.unsqueeze(1)
    each = torch.where(pairs, gaps.clamp(min=0), 0).sum(dim=(1, 2))
    return _mean(each / valid.sum(dim=1).clamp(min=1), valid.any(dim=1))


def _log_softmax(scores: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """(B, N): log softmax over the valid candidates, 0 at the others: finite everywhere, and so are its gradients."""
    import torch

    low = torch.finfo(scores.dtype).min / 2  # finite, so that a row without any candidate gives no NaN
    logged = torch.log_softmax(torch.where(valid, scores, low), dim=1)
    return torch.where(valid, logged, 0)


def _mean(each: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """The mean over the rows that count; 0 where none does."""
    import torch

    return torch.where(counts, each, 0).sum() / counts.sum().clamp(min=1)
