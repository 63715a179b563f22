"""One step of smoothing: every candidate takes a share of its score from the candidates nearest to it.

Who is nearest is kept as bits: (C, N, W) uint64, bit j of row i of a context is set where element j is among the
nearest of candidate i (element i + 1). Sums go in the order of the elements, so that both ways to add up give the same
bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Smooth = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def smoothed(scores: np.ndarray, bits: np.ndarray, share: float) -> np.ndarray:
    """(C, N) float64: (1 - share) s*(i) + share * mean of s* over the nearest of i; s* where it has none.

    scores: (C, N) float64, s*, finite where a bit names them; bits: (C, N, W) uint64.
    """
    width = scores.shape[1]
    mask = np.unpackbits(bits.view(np.uint8), axis=2, bitorder="little")[:, :, 1 : width + 1].astype(bool)
    total = np.cumsum(np.where(mask, scores[:, None], 0.0), axis=2)[:, :, -1] + 0.0
    count = mask.sum(axis=2)
    return np.where(count, (1.0 - share) * scores + share * (total / np.maximum(count, 1)), scores)


@dataclass
class Closest:
    """Of every candidate of a chunk of contexts the `count` nearest ones, which an engine finds.

    bits: see above, 0 before an engine has filled them; smooth: how their scores are added up, an engine's own way.
    """

    count: int
    bits: np.ndarray
    smooth: Smooth = smoothed

    @classmethod
    def of(cls, count: int, contexts: int, widest: int) -> Closest:
        """For so many contexts of at most `widest` elements; count: 0 = no smoothing."""
        return cls(count, np.zeros((contexts, widest - 1, (widest + 63) // 64 if count else 0), dtype=np.uint64))


def closest_bits(order: np.ndarray, known: np.ndarray, count: int) -> np.ndarray:
    """(N, W) uint64 of one context.

    order: (m, m) elements by falling similarity to that of the row, of equal ones the earlier first; known: (m,) how
    many of them are known; count: nearest candidates, all others where there are fewer.
    """
    m = len(order)
    listed, numbers = order[1:], np.arange(1, m)[:, None]
    among = (listed != numbers) & (listed != 0) & (np.arange(m) < known[1:, None])
    mask = np.zeros((m - 1, (m + 63) // 64 * 64), dtype=np.uint8)
    np.put_along_axis(mask, listed, among & (among.cumsum(axis=1) <= count), axis=1)
    return np.packbits(mask, axis=1, bitorder="little").view(np.uint64)


def smooth(scores: np.ndarray, products: np.ndarray, share: float, neighbours: int) -> np.ndarray:
    """(R, n) float64: (1 - share) score + share * mean score of the nearest candidates, as `RnnParams` has it.

    scores: (R, n) float, R scores of each of n candidates; products: (n + 1, n + 1) float32, inner products of the
    query and its candidates, the query first; neighbours: how many are the nearest, all others where there are fewer.

    >>> products = np.array([[1, 0, 0, 0], [0, 1, 0.9, 0.1], [0, 0.9, 1, 0.2], [0, 0.1, 0.2, 1]], dtype=np.float32)
    >>> smooth(np.array([[1.0, 0.0, 0.0]]), products, 0.25, 1).tolist()
    [[0.75, 0.25, 0.0]]
    """
    m = len(products)
    bits = closest_bits(np.argsort(-products, axis=1, kind="stable"), np.full(m, m), neighbours)
    return smoothed(scores.astype(np.float64), np.repeat(bits[None], len(scores), axis=0), share)
