"""One step of smoothing on its own: scores of candidates, whatever they say, over the nearest of each."""

from __future__ import annotations

import numpy as np

from rnnreranker.rnn.fallback import closest_candidates
from rnnreranker.rnn.mixing import smoothed


def smooth(scores: np.ndarray, products: np.ndarray, share: float, neighbours: int) -> np.ndarray:
    """(R, n) float64: (1 - share) score + share * mean score of the nearest candidates, as `RnnParams` has it.

    scores: (R, n) float, R scores of each of n candidates; products: (n + 1, n + 1) float32, inner products of the
    query and its candidates, the query first; neighbours: how many are the nearest, all others where there are fewer.

    >>> products = np.array([[1, 0, 0, 0], [0, 1, 0.9, 0.1], [0, 0.9, 1, 0.2], [0, 0.1, 0.2, 1]], dtype=np.float32)
    >>> smooth(np.array([[1.0, 0.0, 0.0]]), products, 0.25, 1).tolist()
    [[0.75, 0.25, 0.0]]
    """
    count = scores.shape[1]
    closest = np.full((1, count, max(min(neighbours, count - 1), 0)), count, dtype=np.int32)
    if not closest.size:
        return scores.astype(np.float64)
    order = np.argsort(-products, axis=1, kind="stable")
    closest_candidates(order, np.full(count + 1, count + 1), closest[0])
    return smoothed(scores.astype(np.float64), np.repeat(closest, len(scores), axis=0), share)
