"""Checks of the arguments of public functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError, array_of


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
