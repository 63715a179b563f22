"""What an encoder is worth on held-out queries: loss, RR@10, nDCG@10, and where the positives stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from rnnreranker.encode.query_encoder import QueryEncoder
from rnnreranker.files import fingerprint
from rnnreranker.scorer.model import CandidateScorer
from rnnreranker.train.batches import Collator, score
from rnnreranker.train.calibration import calibration_error
from rnnreranker.train.losses.base import Loss, divergence
from rnnreranker.train.samples import Sample
from rnnreranker.train.table import VectorTable

CUT = 10


@dataclass(frozen=True)
class Validation:
    """Means over queries; measures over the queries with a positive among their candidates.

    Args:
        measures: "loss" (of training), "kl", "RR@10", "nDCG@10".
        ranks: of every positive, from 1.
        probabilities: softmax share of the same positives, in [0, 1].
        calibration_error: of the softmax shares of all candidates against their judgements, in [0, 1].
    """

    measures: dict[str, float]
    ranks: tuple[int, ...]
    probabilities: tuple[float, ...]
    calibration_error: float


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
    order = sorted(range(len(collator.samples)), key=lambda place: (len(collator.cut[place]), place))
    losses, divergences = [], []
    ranks: list[int] = []
    probabilities: list[float] = []
    said: list[np.ndarray] = []
    true: list[np.ndarray] = []
    measured: list[tuple[float, float]] = []
    with torch.no_grad():
        for start in range(0, len(order), batch_size):
            places = order[start : start + batch_size]
            batch = collator.batch(places)
            scores = score(encoder, table, batch)
            for line, place in enumerate(places):
                size = len(collator.samples[place].rows)
                own = scores[line, :size].unsqueeze(0)
                targets = torch.from_numpy(batch.targets[line, :size]).unsqueeze(0).to(own.device)
                positive = torch.from_numpy(batch.positive[line, :size]).unsqueeze(0).to(own.device)
                valid = torch.ones_like(positive)
                losses.append(float(loss(own, targets, positive, valid)))
                divergences.append(float(divergence(own, targets, valid)))
                found = _rank(collator.samples[place], own[0].cpu().numpy(), seed)
                ranks += found.tolist()
                shares = torch.softmax(own[0], dim=0).cpu().numpy()
                said.append(shares)
                true.append(batch.positive[line, :size])
                probabilities += np.sort(shares[true[-1]])[::-1].tolist()
                if len(found):
                    measured.append((reciprocal_rank(found), ndcg(found)))
    encoder.train(was_training)
    means = np.mean(measured, axis=0) if measured else (0.0, 0.0)
    measures = {
        "loss": float(np.mean(losses)),
        "kl": float(np.mean(divergences)),
        "RR@10": float(means[0]),
        "nDCG@10": float(means[1]),
    }
    error = calibration_error(np.clip(np.concatenate(said), 0, 1), np.concatenate(true))
    return Validation(measures, tuple(ranks), tuple(probabilities), error)


def _rank(sample: Sample, scores: np.ndarray, seed: int) -> np.ndarray:
    """`rank_positives` of one query, whatever the order of queries and candidates."""
    by_row = np.argsort(sample.rows)
    return rank_positives(scores[by_row], sample.positive[by_row], [seed, int(fingerprint(sample.qid), 16)])


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
