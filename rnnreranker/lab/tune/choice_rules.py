"""Rules that choose among settings by their gains over many cells, a cell being a collection under one first stage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

CAP = 0.02  # of the measure: what a cell gains beyond this counts no more
LOSS = 3.0  # a loss counts this many times as much as a gain of the same size


def mean_gain(gains: np.ndarray) -> np.ndarray:
    """(S,) float64: the mean over the cells of (S, C) gains of S settings.

    It prefers what wins much on a few cells, such as over BM25, to what loses on none.

    >>> mean_gain(np.array([[0.09, -0.03], [0.02, 0.01]])).round(4).tolist()
    [0.03, 0.015]
    """
    return np.asarray(gains, dtype=np.float64).mean(axis=-1)


def capped_gain(gains: np.ndarray) -> np.ndarray:
    """(S,) float64: the mean over the cells of (S, C) gains, each at most `CAP`, losses taken `LOSS` times.

    What a setting wins beyond .02 on one cell pays for no loss on another: a default has to be safe everywhere.

    >>> capped_gain(np.array([[0.09, -0.03], [0.02, 0.01]])).round(4).tolist()
    [-0.035, 0.015]
    """
    gains = np.asarray(gains, dtype=np.float64)
    return np.where(gains < 0, LOSS * gains, np.minimum(gains, CAP)).mean(axis=-1)


RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"capped": capped_gain, "mean": mean_gain}
RULES_HELP = (
    f"what chooses among settings: the mean over cells of the gain, at most {CAP:g} of it and a loss taken {LOSS:g} "
    "times (capped), or as it is (mean)"
)
