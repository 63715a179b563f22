"""Checks of the arguments of public functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError, array_of

FALL = "scores fall where similarities to the query rise; higher is better: give distances as -d"
FALLING, CHANCE = 0.9, 1e-6  # a correlation of distances is below -FALLING, and by chance with this probability


def vectors(values: Any, name: str, shape: str) -> np.ndarray:
    """The array of real numbers, with as many dimensions as `shape` names; InputError: another."""
    array, dimensions = array_of(values, name), shape.count(",") + 1
    if array.ndim != dimensions or array.shape[-1] == 0:
        hint = f"; for one query pass {name}[None]" if array.ndim == dimensions - 1 else ""
        raise InputError(f"{name} has shape {array.shape}: expected {shape}, at least one dimension{hint}")
    return array


def integers(values: Any, name: str) -> np.ndarray:
    """An int64 array of any shape; InputError: other types."""
    array = array_of(values, name)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name} has type {array.dtype}: expected integers")
    return array.astype(np.int64)


def lengths_of(lengths: Any, batch: int, width: int) -> np.ndarray:
    """(B,) int64: the real candidates of every row, 0..width; None = all; InputError: others."""
    if lengths is None:
        return np.full(batch, width, dtype=np.int64)
    real = integers(lengths, "lengths")
    if real.shape != (batch,):
        raise InputError(f"lengths has shape {real.shape}: expected ({batch},), one number per query")
    for row in np.flatnonzero((real < 0) | (real > width))[:1]:
        raise InputError(f"lengths[{row}]={real[row]}: expected 0 to {width}, the candidates of a row")
    return real


def scores_of(
    values: Any, real: np.ndarray, width: int, name: str = "base", dtype: type = np.float64
) -> np.ndarray | None:
    """(B, N) float64: a finite number for every candidate, 0 at padding; InputError: others.

    values: None = None; real: (B,), candidates of each row; dtype: in whose range numbers must be.
    """
    if values is None:
        return None
    scores = array_of(values, name)
    if scores.shape != (len(real), width):
        raise InputError(
            f"{name} has shape {scores.shape}: expected ({len(real)}, {width}), a score for every candidate"
        )
    known = np.where(np.arange(width) < real[:, None], scores, 0.0).astype(np.float64, copy=False)
    for row, column in np.argwhere(~(np.abs(known) <= np.finfo(dtype).max))[:1].tolist():
        raise InputError(f"{name}[{row}, {column}]={known[row, column]}: expected a finite score")
    return known


def same_dimension(one: np.ndarray, name: str, other: np.ndarray, other_name: str) -> None:
    if one.shape[-1] != other.shape[-1]:
        raise InputError(
            f"the dimension of {name} is {one.shape[-1]}, that of {other_name} {other.shape[-1]}: expected the same; "
            "were both made by the same encoder?"
        )


def fall(hits: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> bool:
    """Whether scores are distances: linear in no similarity of the vectors that rises, but in one that falls.

    Similarities are the inner product, the cosine and the L2 distance, for scores and their squares.

    hits: of each query the scores, (n,), its vector, (d,), and those of the hits, (n, d); few or equal scores do not
    count.
    """
    fits, freedom = [], 0
    for scores, query, rows in hits:
        if len(scores) < 3 or not np.ptp(scores):
            continue
        points = rows.astype(np.float64)
        products, squares = points @ query.astype(np.float64), np.square(points).sum(axis=1)
        similar = np.stack([products, products / np.sqrt(np.where(squares > 0, squares, 1)), 2 * products - squares])
        ranks = np.argsort(np.argsort(np.vstack([scores, similar]), kind="stable"), kind="stable")
        linear = _correlations(scores, similar)
        fits.append(
            [*linear, *_correlations(scores * np.abs(scores), similar[2:]), *_correlations(ranks[0], ranks[1:])]
        )
        freedom += len(scores) - 2
    if not fits:
        return False
    means = np.mean(fits, axis=0)
    falling, rising = 1 - min(means[:4].min(), 0) ** 2, 1 - max(means.max(), 0) ** 2  # the shares that stay unexplained
    return bool(falling < min(1 - FALLING**2, CHANCE ** (2 / freedom)) and 10 * falling + 1e-5 < rising)


def _correlations(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(m,) Pearson correlations of (n,) values with (m, n) others; 0 for constant ones."""
    one, others = one - one.mean(), others - others.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(one) * np.linalg.norm(others, axis=1)
    fitted: np.ndarray = np.divide(others @ one, lengths, out=np.zeros(len(others)), where=lengths > 0)
    return fitted
