"""Validation of a model on held-out queries: loss, RR@10, nDCG@10, and ranks of the positives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas
import torch

from rnnreranker.base.files import fingerprint
from rnnreranker.train.losses import Loss, divergence

CUT = 10


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


class Validation(NamedTuple):
    """Means over texts, or over queries; ranking measures over queries with a positive candidate.

    measures: "loss", and of queries "kl", "RR@10", "nDCG@10"; positives: rank, from 1, and softmax share of each.
    """

    measures: dict[str, float]
    positives: Sequence[tuple[int, float]] = ()


def validate(queries: Iterable[Scored], loss: Loss, seed: int) -> Validation:
    """The validation of scored queries, whatever the order of queries and candidates."""
    measured: list[tuple[float, ...]] = []
    positives: list[tuple[int, float]] = []
    for one in queries:
        given = one.trained, one.targets if one.aims is None else one.aims, one.targets, one.positive
        scores, aims, targets, positive = (torch.from_numpy(np.ascontiguousarray(part))[None] for part in given)
        by_id = np.argsort(one.ids)
        searched = one.trained if one.searched is None else one.searched
        ranks = rank_positives(searched[by_id], one.positive[by_id], [seed, int(fingerprint(one.qid), 16)])
        ranking = (reciprocal_rank(ranks), ndcg(ranks)) if len(ranks) else (np.nan, np.nan)
        valid = torch.ones_like(positive)
        measured.append(
            (float(loss(scores, aims, positive, valid)), float(divergence(scores, targets, valid)), *ranking)
        )
        shares = torch.softmax(scores[0], dim=0)[positive[0]].sort(descending=True).values
        positives += zip(ranks.tolist(), shares.tolist(), strict=True)
    means = pandas.DataFrame(measured, columns=["loss", "kl", "RR@10", "nDCG@10"]).mean().fillna(0)
    return Validation({str(name): value for name, value in means.items()}, positives)


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
    ideal = (1 / np.log2(np.arange(1, min(len(ranks), CUT) + 1) + 1)).sum()
    return float((1 / np.log2(ranks[ranks <= CUT] + 1)).sum() / ideal)
