"""How near two matrices come, row by row."""

from __future__ import annotations

import numpy as np


def cosine_of(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The lowest cosine of the rows of two matrices; of two rows of zeros it is 1.

    >>> cosine_of(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 0.0]]))
    1.0
    """
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    empty = ~ours.any(axis=1) & ~theirs.any(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = np.where(empty, 1.0, (ours * theirs).sum(axis=1) / lengths)
    return float(cosines.min())
