"""How often what labels propose is relevant, by how sure they are of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import InputError

if TYPE_CHECKING:
    from rnnreranker.labels.soft import SoftLabels

SIMILARITIES = tuple(round(step / 10, 1) for step in range(11))  # where bins of similarities begin and end
PROBABILITIES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 1.0)  # and of probabilities


def by_confidence(
    values: np.ndarray, relevant: np.ndarray, edges: Sequence[float], weights: np.ndarray | None = None
) -> list[dict[str, float]]:
    """A reliability curve: rows of low, high, candidates (their number), mean (of their values) and relevant (share).

    values, relevant: (n,), what is said of each candidate, and whether it is relevant; weights: (n,), what each counts
    in means, None = alike. A bin has the values above its low edge, up to its high one; what lies beyond the last edges
    is in the first or last bin, and bins without candidates are missing.

    >>> by_confidence(np.array([0.1, 0.4, 0.45]), np.array([False, True, False]), (0.0, 0.2, 0.5))[1]["relevant"]
    0.5
    """
    own = np.ones(len(values)) if weights is None else weights
    bins = np.clip(np.searchsorted(edges, values, side="left") - 1, 0, len(edges) - 2)
    rows = []
    for one in np.unique(bins).tolist():
        chosen = bins == one
        means = [float(np.average(given[chosen], weights=own[chosen])) for given in (values, relevant)]
        row = (float(edges[one]), float(edges[one + 1]), int(chosen.sum()), *means)
        rows.append(dict(zip(("low", "high", "candidates", "mean", "relevant"), row, strict=True)))
    return rows


def of_labels(labels: SoftLabels, truth: Mapping[tuple[str, str], int], relevant: int = 1) -> list[dict[str, float]]:
    """The reliability curve of labels: of candidates beside the positives, by the probability that labels give them.

    Args:
        labels: soft labels.
        truth: (query id, docid) → grade, of judgements that the labels were not made from; others do not count.
        relevant: grades from here on are relevant.

    Raises:
        InputError: none of these candidates is judged.
    """
    values, right = [], []
    for one in labels:
        for docid, share, known in zip(one.docids, one.targets.tolist(), one.positive.tolist(), strict=True):
            if not known and (grade := truth.get((one.qid, docid))) is not None:
                values.append(share)
                right.append(grade >= relevant)
    if not values:
        raise InputError(
            "none of the labelled candidates is judged besides the positives: nothing can be said of the labels; give "
            "judgements of these queries that the labels were not made from"
        )
    return by_confidence(np.array(values), np.array(right), PROBABILITIES)
