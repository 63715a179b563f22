"""From scores to targets of a batch: aggregation, redistribution, normalisation, cut, softmax.

Arrays are (B, N) for queries and candidates; `real` is False at padding. `_total` sums from left to right, so padding
has no effect on the last digit.
"""

from __future__ import annotations

import numpy as np

from rnnreranker.labels.params import LabelParams


def aggregated(scores: np.ndarray, grades: np.ndarray, how: str) -> np.ndarray:
    """(B, N) float64: scores times grades, as mean, max or sum over the positives.

    scores: (B, R, N), positive l against candidate c; grades: (B, R) > 0.
    """
    with np.errstate(invalid="ignore"):
        weighted = scores.astype(np.float64) * grades[:, :, None]
    if how == "max":
        return weighted.max(axis=1)
    total = weighted[:, 0].copy()
    for positive in range(1, weighted.shape[1]):
        total += weighted[:, positive]
    return total / weighted.shape[1] if how == "mean" else total


def redistributed(
    scores: np.ndarray, grades: np.ndarray, real: np.ndarray, params: LabelParams, literal: bool = False
) -> np.ndarray:
    """(B, N) float64 labels: the scores ("radically"), or the grades of which a share is given away ("fully").

    grades: (B, N), 0 for other candidates. Fully: a positive keeps (1 - rho) of its grade; the others share rho times
    all grades in proportion to their scores. Unless `literal`, negative scores count as 0, and all-zero scores share
    equally.
    """
    if params.redistribute == "radically":
        return scores
    others = real & (grades == 0)
    shares = np.where(others, scores if literal else np.maximum(scores, 0.0), 0.0)
    total = _total(shares)
    empty = total == 0.0
    shares = np.where(empty[:, None], others, shares) / np.where(empty, np.maximum(others.sum(1), 1), total)[:, None]
    given = params.rho * _total(np.where(real, grades, 0.0))
    return np.where(others, given[:, None] * shares, (1.0 - params.rho) * grades)


def of_grades(grades: np.ndarray) -> np.ndarray:
    """Hard targets of positives, float64: the softmax of their grades over the last axis (001, eq. 3).

    >>> of_grades(np.array([1.0, 3.0])).round(2).tolist()
    [0.12, 0.88]
    """
    odds = np.exp(grades - grades.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


def targets(labels: np.ndarray, positive: np.ndarray, real: np.ndarray, params: LabelParams) -> np.ndarray:
    """(B, N) float32 probabilities, rows sum to 1; 0 at padding and for candidates that are cut.

    labels: (B, N) float64, ignored at padding; positive: (B, N) bool, one real positive per row at least. Earlier
    candidates win ties. If all are cut, positives share alike.
    """
    values = transformed(labels, positive, real, params)
    values = values / params.temperature
    kept = np.isfinite(values)
    lost = ~kept.any(axis=1)
    if lost.any():
        kept[lost] = positive[lost] & real[lost]
        values[lost] = np.where(kept[lost], 0.0, -np.inf)
    highest = values.max(axis=1, initial=-np.inf, keepdims=True)
    with np.errstate(invalid="ignore"):
        odds = np.where(kept, np.exp(values - highest), 0.0)
    return (odds / _total(odds)[:, None]).astype(np.float32)


def transformed(labels: np.ndarray, positive: np.ndarray, real: np.ndarray, params: LabelParams) -> np.ndarray:
    """(B, N) float64: input of the softmax, -inf for candidates without probability."""
    labels = np.where(real, labels, -np.inf).astype(np.float64)
    if params.compat == "coder":
        return _as_published(labels, positive & real, real, params)
    values = normalized(labels, real, params.normalization)
    boosted = np.maximum(values * params.boost, values)  # never lowers a positive whose value is negative
    values = np.where(positive & real, boosted, values)
    kept = real
    if params.n_max is not None:
        kept = kept & (_ranks(labels) < params.n_max)
    if params.include_level is not None:
        kept = kept & (values >= params.include_level)
    return np.where((kept | positive) & real, values, -np.inf)


def _as_published(labels: np.ndarray, positive: np.ndarray, real: np.ndarray, params: LabelParams) -> np.ndarray:
    """The order of steps of the published models; see LabelParams."""
    level = -np.inf if params.include_level is None else params.include_level
    ranks = _ranks(np.where(labels >= level, labels, -np.inf))
    kept = real & (labels >= level)
    if params.n_max is not None:
        kept &= ranks < params.n_max
    values = normalized(labels, kept, params.normalization)
    with np.errstate(over="ignore"):
        half = values.astype(np.float16).astype(np.float64)
    values = np.where(np.isinf(half), values, half)  # raw inner products may be beyond float16
    first = ranks < positive.sum(axis=1, keepdims=True)
    values = np.where(kept & first, values * params.boost, values)
    return np.where(kept & (values >= level), values, -np.inf)


def normalized(labels: np.ndarray, real: np.ndarray, how: str) -> np.ndarray:
    """(B, N) float64: labels normalised over the real entries of each row; -inf elsewhere.

    maxmin (s - min) / (max - min); std (s - min) / population sigma; max s / max; maxminmax: maxmin times max; none.
    Equal labels become 1 by maxmin and std; a maximum of 0 or less divides by 1.
    """
    low = np.where(real, labels, np.inf).min(axis=1, initial=np.inf, keepdims=True)
    high = np.where(real, labels, -np.inf).max(axis=1, initial=-np.inf, keepdims=True)
    values = np.where(real, labels, 0.0)
    some = real.any(axis=1, keepdims=True)
    low, high = np.where(some, low, 0.0), np.where(some, high, 0.0)
    if how == "max":
        values = values / np.where(high > 0.0, high, 1.0)
    elif how != "none":
        if how == "std":
            count = np.maximum(real.sum(axis=1, keepdims=True), 1)
            mean = _total(values)[:, None] / count
            divisor = np.sqrt(_total(np.where(real, values - mean, 0.0) ** 2)[:, None] / count)
        else:
            divisor = high - low
        flat = (high == low) | (divisor == 0.0)
        values = np.where(flat, 1.0, (values - low) / np.where(flat, 1.0, divisor))
        if how == "maxminmax":
            values = values * high
    return np.where(real, values, -np.inf)


def with_mass_of(control: np.ndarray, evidence: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """(B, N) float32: the control's targets, with positives and others scaled to evidence's shares of both.

    If the control gives one side nothing, the other has all.
    """
    share = np.minimum(_total(np.where(positive, evidence, 0.0).astype(np.float64)), 1.0)  # float32 may sum to more
    out = np.zeros(control.shape)
    for side, wanted in ((positive, share), (~positive, 1.0 - share)):
        part = np.where(side, control, 0.0).astype(np.float64)
        sums = _total(part)
        out += part * (np.where(sums > 0.0, wanted, 0.0) / np.where(sums > 0.0, sums, 1.0))[:, None]
    sums = _total(out)
    return (out / np.where(sums > 0.0, sums, 1.0)[:, None]).astype(np.float32)


def with_share(own: np.ndarray, hard: np.ndarray, takers: np.ndarray, share: float) -> np.ndarray:
    """(B, N) float32: (1 - share) hard + share times `own` over the takers, normalised; hard if that is 0.

    own, hard: (B, N), rows sum to 1; takers: (B, N) bool, without positives.
    """
    given = np.where(takers, own, 0.0).astype(np.float64)
    sums = _total(given)[:, None]
    shares = np.where(sums > 0.0, share, 0.0)
    mixed: np.ndarray = (1.0 - shares) * hard + shares * given / np.where(sums > 0.0, sums, 1.0)
    return mixed.astype(np.float32)


def _ranks(labels: np.ndarray) -> np.ndarray:
    """(B, N) int64: ranks in a row by descending value, from 0; earlier ties first."""
    order = np.argsort(-labels, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(labels.shape[1]), labels.shape), axis=1)
    return ranks


def _total(values: np.ndarray) -> np.ndarray:
    """(B,): sums of rows, from left to right."""
    return np.cumsum(values, axis=1)[:, -1] if values.shape[1] else np.zeros(len(values))
