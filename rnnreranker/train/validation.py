"""What an encoder is worth on held-out queries: loss, RR@10, nDCG@10, and where the positives stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rnnreranker.base.files import fingerprint
from rnnreranker.encode.query_encoder import QueryEncoder
from rnnreranker.encode.scorer import CandidateScorer
from rnnreranker.labels.soft import Labels
from rnnreranker.train.losses import Loss, divergence
from rnnreranker.train.query.samples import Collator, VectorTable, score

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

    def of_candidates(self, before: Validation) -> dict[str, Any]:
        """What the record of a training says of it, before and after, where candidates were validated.

        The calibration error, and rank and probability of every positive.
        """
        if self.calibration_error is None:
            return {}
        both = {"before": before, "after": self}
        errors = {name: one.calibration_error for name, one in both.items()}
        pairs = {name: list(map(list, zip(one.ranks, one.probabilities, strict=True))) for name, one in both.items()}
        return {"calibration_error": errors, "positives": pairs}


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
        self._queries: list[tuple[float, float, np.ndarray, np.ndarray, np.ndarray]] = []

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
        by = own[0].cpu().numpy() if searched is None else searched
        self._queries.append(
            (
                float(self._loss(own, aims, judged, valid)),
                float(divergence(own, wanted, valid)),
                rank_positives_of(qid, ids, by, positive[:size], self._seed),
                torch.softmax(own[0], dim=0).cpu().numpy(),
                positive[:size],
            )
        )

    def result(self, others: Mapping[str, float] | None = None) -> Validation:
        """The means, with other measures beside them."""
        losses, divergences, ranks, shares, positive = zip(*self._queries, strict=True)
        measured = [(reciprocal_rank(own), ndcg(own)) for own in ranks if len(own)] or [(0.0, 0.0)]
        means = np.mean(losses), np.mean(divergences), *np.mean(measured, axis=0)
        names = ("loss", "kl", "RR@10", "nDCG@10")
        measures = dict(zip(names, map(float, means), strict=True)) | dict(others or {})
        likely = [np.sort(own[known])[::-1] for own, known in zip(shares, positive, strict=True)]
        error = calibration_error(np.clip(np.concatenate(shares), 0, 1), np.concatenate(positive))
        return Validation(
            measures, tuple(np.concatenate(ranks).tolist()), tuple(np.concatenate(likely).tolist()), error
        )


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
