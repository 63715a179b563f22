"""Labels of candidates scaled to [0, 1], each by itself, for losses that compare no candidates."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rnnreranker.labels.soft import Labels

LabelScale = Literal["scores", "cosine", "maxmin", "targets"]


def scaled_labels(labels: Labels, scale: LabelScale) -> np.ndarray:
    """(n,) float32 in [0, 1]: the scaled labels of a query's n candidates; 0 of one without a score.

    Args:
        labels: of the query.
        scale: "scores": the scores of the method, cut to [0, 1], as of hard labels and of paper 004's eq. 5;
            "cosine": (1 + score) / 2, which is 1 - f of its eq. 6; "maxmin": from 0, the lowest score of the query, to
            1, the highest (all 0 where they are equal); "targets": over the largest target, as normalisation, boost and
            the rest of the labels' parameters have made them.

    >>> one = Labels("q", ["a", "b", "c"], np.array([0.5, -0.5, -np.inf], dtype=np.float32), np.array([0.8, 0.2, 0],
    ...     dtype=np.float32), np.array([True, False, False]))
    >>> scaled_labels(one, "scores").tolist(), scaled_labels(one, "cosine").tolist()
    ([0.5, 0.0, 0.0], [0.75, 0.25, 0.0])
    >>> scaled_labels(one, "maxmin").tolist(), scaled_labels(one, "targets").tolist()
    ([1.0, 0.0, 0.0], [1.0, 0.25, 0.0])
    """
    if scale == "targets":
        highest = labels.targets.max(initial=0)
        return (labels.targets / highest if highest > 0 else labels.targets).astype(np.float32)
    known = np.isfinite(labels.scores)
    scores = np.where(known, labels.scores, 0)
    if scale == "cosine":
        scores = (1 + scores) / 2
    elif scale == "maxmin" and known.any():
        low, high = float(scores[known].min()), float(scores[known].max())
        scores = (scores - low) / (high - low) if high > low else np.zeros_like(scores)
    return np.where(known, np.clip(scores, 0, 1), 0).astype(np.float32)
