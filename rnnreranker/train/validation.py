"""What an encoder is worth on held-out queries: loss, RR@10, nDCG@10, and where the positives stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rnnreranker.base.files import fingerprint
from rnnreranker.encode.dense.query_encoder import QueryEncoder
from rnnreranker.encode.scorer.model import CandidateScorer
from rnnreranker.labels.soft import Labels
from rnnreranker.train.losses import Loss, divergence
from rnnreranker.train.query.batches import Collator, VectorTable, score

CUT = 10
BINS = 10


class Scored(NamedTuple):
    """What a model gives every query's candidates, (n,) float32 each.

    searched: as a search has them, which ranks by them; trained: as the loss has them; others: what else was measured
    on the way; scaled: labels that the loss has instead of targets, None = the targets.
    """

    searched: list[np.ndarray]
    trained: list[np.ndarray]
    others: dict[str, float]
    scaled: list[np.ndarray] | None = None


@dataclass(frozen=True)
class Validation:
    """Means over texts, or over queries; measures over the queries with a positive among their candidates.

    Args:
        measures: "loss" (of training), of queries "kl", "RR@10", "nDCG@10" too.
        ranks: of every positive, from 1.
        probabilities: softmax share of the same positives, in [0, 1].
        calibration_error: of the softmax shares of all candidates against their judgements, in [0, 1]; None = there
            are no candidates.
    """

    measures: dict[str, float]
    ranks: tuple[int, ...] = ()
    probabilities: tuple[float, ...] = ()
    calibration_error: float | None = None

    def calibration(self, before: Validation) -> dict[str, Any]:
        """What the record of a training says of it, where candidates were validated."""
        if self.calibration_error is None:
            return {}
        return {"calibration_error": {"before": before.calibration_error, "after": self.calibration_error}}

    def positives(self, before: Validation) -> dict[str, Any]:
        """Rank and probability of every positive, before and after a training, where candidates were validated."""
        if self.calibration_error is None:
            return {}
        both = {"before": before, "after": self}
        return {
            "positives": {
                name: [list(pair) for pair in zip(one.ranks, one.probabilities, strict=True)]
                for name, one in both.items()
            }
        }


def validate(
    encoder: QueryEncoder | CandidateScorer,
    table: VectorTable,
    collator: Collator,
    loss: Loss,
    batch_size: int,
    seed: int,
) -> Validation:
    """The validation of an encoder, left in the mode (training or not) it was in.

    Candidates are shuffled before they are sorted, so that documents with equal scores gain nothing from the order of
    the first stage. Queries run shortest first; each is measured by itself, so the order changes nothing.
    """
    was_training = encoder.training
    encoder.eval()
    order = sorted(range(len(collator.samples)), key=lambda number: (len(collator.cut[number]), number))
    tally = Tally(loss, seed)
    with torch.no_grad():
        for start in range(0, len(order), batch_size):
            numbers = order[start : start + batch_size]
            batch = collator.batch(numbers)
            scores = score(encoder, table, batch)
            for line, number in enumerate(numbers):
                sample = collator.samples[number]
                size = len(sample.rows)
                tally.add(sample.qid, sample.rows, scores[line, :size], batch.targets[line], batch.positive[line])
    encoder.train(was_training)
    return tally.result()


def validate_lists(lists: Sequence[Labels], scored: Scored, loss: Loss, seed: int) -> Validation:
    """The validation of scores that a model gave every candidate of every query."""
    tally = Tally(loss, seed)
    scaled = scored.scaled or [one.targets for one in lists]
    for one, trained, searched, own in zip(lists, scored.trained, scored.searched, scaled, strict=True):
        tally.add(one.qid, np.array(one.docids), torch.from_numpy(trained), one.targets, one.positive, searched, own)
    return tally.result(scored.others)


class Tally:
    """Measures of queries one after the other, and their means."""

    def __init__(self, loss: Loss, seed: int) -> None:
        self._loss, self._seed = loss, seed
        self._losses: list[float] = []
        self._divergences: list[float] = []
        self._ranks: list[int] = []
        self._probabilities: list[float] = []
        self._said: list[np.ndarray] = []
        self._true: list[np.ndarray] = []
        self._measured: list[tuple[float, float]] = []

    def add(
        self,
        qid: str,
        ids: np.ndarray,
        scores: Tensor,
        targets: np.ndarray,
        positive: np.ndarray,
        searched: np.ndarray | None = None,
        scaled: np.ndarray | None = None,
    ) -> None:
        """Take up a query: ids, scores, targets and what is positive of its n candidates; what follows is padding.

        searched: what ranks them, where that is not the scores of the loss; scaled: what the loss has for targets.
        """
        size = len(ids)
        own = scores.unsqueeze(0)
        wanted, judged = (torch.from_numpy(part[:size]).unsqueeze(0).to(own.device) for part in (targets, positive))
        valid = torch.ones_like(judged)
        aims = wanted if scaled is None else torch.from_numpy(scaled[:size]).unsqueeze(0).to(own.device)
        self._losses.append(float(self._loss(own, aims, judged, valid)))
        self._divergences.append(float(divergence(own, wanted, valid)))
        by = own[0].cpu().numpy() if searched is None else searched
        ranks = rank_positives_of(qid, ids, by, positive[:size], self._seed)
        self._ranks += ranks.tolist()
        shares = torch.softmax(own[0], dim=0).cpu().numpy()
        self._said.append(shares)
        self._true.append(positive[:size])
        self._probabilities += np.sort(shares[self._true[-1]])[::-1].tolist()
        if len(ranks):
            self._measured.append((reciprocal_rank(ranks), ndcg(ranks)))

    def result(self, others: Mapping[str, float] | None = None) -> Validation:
        """The means, with other measures beside them."""
        means = np.mean(self._measured, axis=0) if self._measured else (0.0, 0.0)
        measures = {
            "loss": float(np.mean(self._losses)),
            "kl": float(np.mean(self._divergences)),
            "RR@10": float(means[0]),
            "nDCG@10": float(means[1]),
            **(others or {}),
        }
        error = calibration_error(np.clip(np.concatenate(self._said), 0, 1), np.concatenate(self._true))
        return Validation(measures, tuple(self._ranks), tuple(self._probabilities), error)


def rank_positives_of(qid: str, ids: np.ndarray, scores: np.ndarray, positive: np.ndarray, seed: int) -> np.ndarray:
    """`rank_positives` of one query, whatever the order of queries and candidates; ids tell the candidates apart."""
    by_id = np.argsort(ids)
    return rank_positives(scores[by_id], positive[by_id], [seed, int(fingerprint(qid), 16)])


def rank_positives(scores: np.ndarray, positive: np.ndarray, seed: Sequence[int]) -> np.ndarray:
    """The ranks (from 1, ascending) of the positives by descending score, equal scores in random order.

    >>> rank_positives(np.array([3.0, 1.0, 2.0]), np.array([False, False, True]), [0]).tolist()
    [2]
    """
    shuffled = np.random.default_rng(list(seed)).permutation(len(scores))
    order = shuffled[np.argsort(-scores[shuffled], kind="stable")]
    return np.flatnonzero(positive[order]) + 1


def reciprocal_rank(ranks: np.ndarray) -> float:
    """RR@10 from the ranks of the positives, ascending."""
    return 1.0 / float(ranks[0]) if len(ranks) and ranks[0] <= CUT else 0.0


def ndcg(ranks: np.ndarray) -> float:
    """nDCG@10 with gain 1 for every positive, from their ranks; all positives are among the candidates."""
    if not len(ranks):
        return 0.0
    ideal = (1 / np.log2(np.arange(1, min(len(ranks), CUT) + 1) + 1)).sum()
    return float((1 / np.log2(ranks[ranks <= CUT] + 1)).sum() / ideal)


def calibration_error(probabilities: np.ndarray, relevant: np.ndarray, bins: int = BINS) -> float:
    """The expected calibration error, in [0, 1]: sum over bins of n_b / n * |mean probability - share of relevant|.

    Args:
        probabilities: (n,) float in [0, 1], say the softmax share or the sigmoid of every candidate's score.
        relevant: (n,) bool.
        bins: of equal width; 1 falls into the last.

    >>> calibration_error(np.array([0.75, 0.75, 0.25, 0.25]), np.array([True, True, True, False]))
    0.25
    """
    said = probabilities.astype(np.float64)
    bin_of = np.minimum((said * bins).astype(np.int64), bins - 1)
    off = np.bincount(bin_of, said, bins) - np.bincount(bin_of, relevant, bins)
    return float(np.abs(off).sum() / len(said))
