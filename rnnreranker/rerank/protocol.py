"""What a reranker is, and how new scores of a query's context join the rest of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from rnnreranker.runs import Run
    from rnnreranker.vectors import QueryVectors


class Reranker(Protocol):
    """Anything with a name and a `rerank` method that returns the same entries in a new order."""

    name: str

    def rerank(self, run: Run, query_vectors: QueryVectors) -> Run:
        """The run with the first candidates of every query in a new order and the rest below them."""
        ...


def order_by_score(scores: np.ndarray, docid_ranks: np.ndarray) -> np.ndarray:
    """Positions that put scores in descending order, ties by docid.

    Args:
        scores: (n,) float, larger = better.
        docid_ranks: (n,) int, the place of each docid in ascending order.
    """
    return np.lexsort((docid_ranks, -scores))


def place_below(last_score: float, scores: np.ndarray) -> np.ndarray:
    """The scores of a run's rest, moved as a block below `last_score`; their order and differences stay.

    Args:
        last_score: the lowest score above the block.
        scores: (n,) float64, non-increasing.

    Returns:
        (n,) float64, non-increasing, all lower than `last_score`; the step is the largest difference inside the block's
        own scale, or 1 when the block is flat.

    >>> place_below(0.5, np.array([9.0, 8.0, 8.0])).tolist()
    [-0.5, -1.5, -1.5]
    """
    if scores.size == 0:
        return scores
    spread = float(scores[0] - scores[-1])
    step = spread if spread > 0 else 1.0
    return last_score - step - (scores[0] - scores)
