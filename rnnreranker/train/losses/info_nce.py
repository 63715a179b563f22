"""The softmax over a positive, its negatives and the candidates of the other queries of a batch."""

from __future__ import annotations

from rnnreranker.train.losses.base import BatchLoss
from rnnreranker.train.losses.lce import LceLoss


class InfoNceLoss(LceLoss, BatchLoss):
    """As `lce`, where the candidates of the other queries of a batch are negatives too (InfoNCE)."""

    name = "info-nce"
