"""Whether a score means what it says: the calibration error of probabilities of relevance."""

from __future__ import annotations

import numpy as np

from rnnreranker.base.errors import InputError

BINS = 10


def calibration_error(probabilities: np.ndarray, relevant: np.ndarray, bins: int = BINS) -> float:
    """The expected calibration error, in [0, 1]: sum over bins of n_b / n * |mean probability - share of relevant|.

    Args:
        probabilities: (n,) float in [0, 1], say the softmax share or the sigmoid of every candidate's score.
        relevant: (n,) bool.
        bins: of equal width; 1 falls into the last.

    Raises:
        InputError: arrays of different lengths or empty, values outside [0, 1].

    >>> calibration_error(np.array([0.75, 0.75, 0.25, 0.25]), np.array([True, True, True, False]))
    0.25
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    relevant = np.asarray(relevant, dtype=bool)
    if probabilities.shape != relevant.shape or probabilities.ndim != 1 or not len(probabilities):
        raise InputError(
            f"{probabilities.shape} probabilities for {relevant.shape} judgements; expected one list of equal length"
        )
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise InputError("probabilities outside [0, 1] or NaN; give softmax shares or sigmoids, not raw scores")
    bin_of = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    said = np.bincount(bin_of, weights=probabilities, minlength=bins)
    true = np.bincount(bin_of, weights=relevant, minlength=bins)
    return float(np.abs(said - true).sum() / len(probabilities))
