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


def order_by_score(scores: np.ndarray, docids: np.ndarray, queries: np.ndarray | None = None) -> np.ndarray:
    """Positions that put scores in descending order, ties by docid, the queries one after the other.

    Args:
        scores: (n,) float, larger = better.
        docids: (n,) strings.
        queries: (n,) int, the number of each entry's query; None = all of one query.

    >>> order_by_score(np.array([1.0, 2.0, 1.0]), np.array(["c", "a", "b"])).tolist()
    [1, 2, 0]
    """
    if queries is None:
        queries = np.zeros(len(scores), dtype=np.int64)
    order = np.lexsort((-scores, queries))
    tied = np.flatnonzero((np.diff(scores[order]) == 0) & (np.diff(queries[order]) == 0))
    if not len(tied):
        return order
    among = order[np.union1d(tied, tied + 1)]  # docids are compared only where it matters
    ranks = np.zeros(len(scores), dtype=np.int64)
    ranks[among] = np.unique(docids[among], return_inverse=True)[1]
    return np.lexsort((ranks, -scores, queries))


def place_below(last_score: float, scores: np.ndarray) -> np.ndarray:
    """The scores of a run's rest, moved as a block below `last_score`; their order and differences stay.

    Args:
        last_score: the lowest score above the block.
        scores: (n,) float64, non-increasing.

    Returns:
        (n,) float64, non-increasing, all lower than `last_score`; the step down to the first is the difference between
        the highest and lowest score of the block, or 1 where they are equal. Where float64 cannot hold these
        differences at such a height, as beside raw inner products of 1e17, the steps are equal and just large enough.

    >>> place_below(0.5, np.array([9.0, 8.0, 8.0])).tolist()
    [-0.5, -1.5, -1.5]
    >>> place_below(1e17, np.array([9.0, 8.0, 8.0])).tolist()
    [9.999999999999994e+16, 9.999999999999987e+16, 9.999999999999987e+16]
    """
    if scores.size == 0:
        return scores
    falls = np.diff(scores) < 0
    with np.errstate(all="ignore"):
        spread = float(scores[0] - scores[-1])
        below = last_score - (spread if spread > 0 else 1.0) - (scores[0] - scores)
        if below[0] < last_score and (np.diff(below)[falls] < 0).all() and np.isfinite(below[-1]):
            return below
    unit = max(1.0, 4.0 * float(np.spacing(abs(last_score))))
    return last_score - unit * np.concatenate([[1], 1 + np.cumsum(falls)])
