"""How far an encoder puts questions from documents, and how much of its space it uses: paper 004's Figure 5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

RANGES = 10  # of equal width, of distances from 0 to 1
ROWS = 1024  # queries at a time


def distances_of(queries: np.ndarray, documents: np.ndarray, relevant: Sequence[np.ndarray]) -> dict[str, Any]:
    """The shares of pairs by their distance f = (1 - cosine) / 2 (paper 004, eq. 6), and how far vectors lie on a line.

    Args:
        queries: (Q, D) vectors of length 1; documents: (N, D), too.
        relevant: of every query the rows of its relevant documents.

    Returns:
        relevant, others: shares of the pairs of either kind whose distance is in (0, .1], …, (.9, 1], as the paper has
        them (4.3), 0 itself in the first (lists of 10, 0 where there are no such pairs). line: the largest eigenvalue
        of the second moments of queries and documents over the sum of all: 1 where all vectors are multiples of one,
        1/D where they use every direction alike.
    """
    counts, edges = np.zeros((2, RANGES), dtype=np.int64), np.linspace(0, 1, RANGES + 1, dtype=np.float32)
    for start, cosines in _blocks(queries, documents):
        bins = np.clip(np.searchsorted(edges, (1 - cosines) / 2, side="left") - 1, 0, RANGES - 1)
        counts[1] += np.bincount(bins.ravel(), minlength=RANGES)
        for row, its in enumerate(relevant[start : start + len(cosines)]):
            own = np.bincount(bins[row, its], minlength=RANGES)
            counts += [own, -own]
    moments = sum(vectors.astype(np.float64).T @ vectors / len(vectors) for vectors in (queries, documents))
    values = np.linalg.eigvalsh(moments)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return {"relevant": shares[0].tolist(), "others": shares[1].tolist(), "line": float(values[-1] / values.sum())}


def _blocks(queries: np.ndarray, documents: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, len(queries), ROWS):
        yield start, queries[start : start + ROWS] @ documents.T
