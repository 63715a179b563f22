"""Validation of a model on held-out queries: loss, RR@10, nDCG@10, and ranks of the positives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from rnnreranker.base.files import fingerprint
from rnnreranker.train.losses import Loss, divergence

CUT = 10
BINS = 10


class Scored(NamedTuple):
    """The n candidates of a query with a model's scores, (n,) each.

    targets: float32; positive: bool; trained: float32 scores of the loss; searched: float32 scores of a search, None =
    `trained`; aims: float32 targets of the loss, None = `targets`.
    """

    qid: str
    ids: Sequence[str] | np.ndarray
    targets: np.ndarray
    positive: np.ndarray
    trained: np.ndarray
    searched: np.ndarray | None = None
    aims: np.ndarray | None = None


@dataclass(frozen=True)
class Validation:
    """Means over texts, or over queries; ranking measures over queries with a positive candidate.

    Attributes:
        measures: "loss", and of queries "kl", "RR@10", "nDCG@10".
        ranks: of every positive, from 1; probabilities: their softmax shares.
        calibration_error: of all softmax shares, in [0, 1]; None = no candidates.
    """

    measures: dict[str, float]
    ranks: tuple[int, ...] = ()
    probabilities: tuple[float, ...] = ()
    calibration_error: float | None = None

    def of_candidates(self, before: Validation) -> dict[str, Any]:
        """Calibration error, ranks and probabilities of positives, before and after, for the record."""
        if self.calibration_error is None:
            return {}
        both = {"before": before, "after": self}
        errors = {name: one.calibration_error for name, one in both.items()}
        pairs = {name: list(map(list, zip(one.ranks, one.probabilities, strict=True))) for name, one in both.items()}
        return {"calibration_error": errors, "positives": pairs}


def validate(queries: Iterable[Scored], loss: Loss, seed: int, others: Mapping[str, float] | None = None) -> Validation:
    """The validation of scored queries, with further measures; independent of the order of queries and candidates."""
    queried = []
    for one in queries:
        given = one.trained, one.targets if one.aims is None else one.aims, one.targets, one.positive
        scores, aims, targets, positive = (torch.from_numpy(np.ascontiguousarray(part)).unsqueeze(0) for part in given)
        valid = torch.ones_like(positive)
        by_id = np.argsort(one.ids)
        searched = one.trained if one.searched is None else one.searched
        ranks = rank_positives(searched[by_id], one.positive[by_id], [seed, int(fingerprint(one.qid), 16)])
        measured = (reciprocal_rank(ranks), ndcg(ranks)) if len(ranks) else None
        losses = float(loss(scores, aims, positive, valid)), float(divergence(scores, targets, valid))
        shares = torch.softmax(scores[0], dim=0).numpy()
        queried.append((losses, measured, ranks, np.sort(shares[one.positive])[::-1], shares, one.positive))
    every, values, ranked, likely, shares, positive = zip(*queried, strict=True)
    means = [*np.mean(every, axis=0), *np.mean([one for one in values if one] or [(0.0, 0.0)], axis=0)]
    measures = dict(zip(("loss", "kl", "RR@10", "nDCG@10"), map(float, means), strict=True)) | dict(others or {})
    error = calibration_error(np.clip(np.concatenate(shares), 0, 1), np.concatenate(positive))
    return Validation(measures, tuple(np.concatenate(ranked).tolist()), tuple(np.concatenate(likely).tolist()), error)


def rank_positives(scores: np.ndarray, positive: np.ndarray, seed: Sequence[int]) -> np.ndarray:
    """Ranks (from 1, ascending) of the positives by descending score, ties in random order.

    >>> rank_positives(np.array([3.0, 1.0, 2.0]), np.array([False, False, True]), [0]).tolist()
    [2]
    """
    shuffled = np.random.default_rng(list(seed)).permutation(len(scores))
    order = shuffled[np.argsort(-scores[shuffled], kind="stable")]
    return np.flatnonzero(positive[order]) + 1


def reciprocal_rank(ranks: np.ndarray) -> float:
    """RR@10 from ascending ranks of the positives."""
    return 1.0 / float(ranks[0]) if len(ranks) and ranks[0] <= CUT else 0.0


def ndcg(ranks: np.ndarray) -> float:
    """nDCG@10 with binary gain from the ranks of all positives."""
    if not len(ranks):
        return 0.0
    ideal = (1 / np.log2(np.arange(1, min(len(ranks), CUT) + 1) + 1)).sum()
    return float((1 / np.log2(ranks[ranks <= CUT] + 1)).sum() / ideal)


def calibration_error(probabilities: np.ndarray, relevant: np.ndarray, bins: int = BINS) -> float:
    """The expected calibration error, in [0, 1]: sum over bins of n_b / n * |mean probability - share of relevant|.

    probabilities: (n,) float in [0, 1]; relevant: (n,) bool; bins: of equal width, 1 in the last.

    >>> calibration_error(np.array([0.75, 0.75, 0.25, 0.25]), np.array([True, True, True, False]))
    0.25
    """
    said = probabilities.astype(np.float64)
    bin_of = np.minimum((said * bins).astype(np.int64), bins - 1)
    off = np.bincount(bin_of, said, bins) - np.bincount(bin_of, relevant, bins)
    return float(np.abs(off).sum() / len(said))
