"""Checks of the arguments of public functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.process.threads import one_blas_thread
from rnnreranker.rnn.params import RnnParams


def vectors(array: np.ndarray, name: str, shape: str) -> np.ndarray:
    """The array of real numbers, with as many dimensions as `shape` names; InputError: another."""
    array = _array(array, name)
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} has type {array.dtype}: expected float32 or float16")
    dimensions = shape.count(",") + 1
    if array.ndim != dimensions:
        hint = f"; for one query pass {name}[None]" if array.ndim == dimensions - 1 else ""
        raise InputError(f"{name} has shape {array.shape}: expected {shape}{hint}")
    if array.shape[-1] == 0:
        raise InputError(f"{name} has shape {array.shape}: expected vectors of at least one dimension")
    return array


def _array(values: np.ndarray | Sequence[Any], name: str) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:  # nested sequences of different lengths
        raise InputError(f"{name} cannot be made an array: expected rows of one length") from None


def integers(values: np.ndarray | Sequence[int], name: str) -> np.ndarray:
    """An int64 array of any shape; InputError: other types."""
    array = _array(values, name)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name} has type {array.dtype}: expected integers")
    return array.astype(np.int64)


def lengths_of(lengths: np.ndarray | Sequence[int] | None, batch: int, width: int) -> np.ndarray:
    """(B,) int64: the real candidates of every row, 0..width; None = all; InputError: others."""
    if lengths is None:
        return np.full(batch, width, dtype=np.int64)
    real = integers(lengths, "lengths")
    if real.shape != (batch,):
        raise InputError(f"lengths has shape {real.shape}: expected ({batch},), one number per query")
    outside = np.flatnonzero((real < 0) | (real > width))
    if outside.size:
        raise InputError(f"lengths[{outside[0]}]={real[outside[0]]}: expected 0 to {width}, the candidates of a row")
    return real


def base_scores(
    base: np.ndarray | Sequence[Sequence[float]] | None, real: np.ndarray, width: int, name: str = "base"
) -> np.ndarray | None:
    """(B, N) float64: a finite score for every candidate, 0 at padding; InputError: others."""
    if base is None:
        return None
    scores = _array(base, name)
    if scores.dtype.kind not in "fiu":
        raise InputError(f"{name} has type {scores.dtype}: expected numbers")
    if scores.shape != (len(real), width):
        raise InputError(
            f"{name} has shape {scores.shape}: expected ({len(real)}, {width}), a score for every candidate"
        )
    known = np.where(np.arange(width) < real[:, None], scores, 0.0).astype(np.float64, copy=False)
    if not np.isfinite(known).all():
        row, column = np.argwhere(~np.isfinite(known))[0].tolist()
        raise InputError(f"{name}[{row}, {column}]={known[row, column]}: expected a finite score")
    return known


def same_dimension(one: np.ndarray, name: str, other: np.ndarray, other_name: str) -> None:
    if one.shape[-1] != other.shape[-1]:
        raise InputError(
            f"the dimension of {name} is {one.shape[-1]}, that of {other_name} {other.shape[-1]}: expected the same; "
            "were both made by the same encoder?"
        )


def threads_of(threads: int | None) -> int | None:
    """The number of threads, None = one per core; InputError: not an integer >= 1."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1):
        raise InputError(f"threads={threads!r}: expected an integer >= 1, or None for one per core")
    return threads


def in_threads(work: Callable[[], object], workers: int) -> None:
    """Run `work` in so many threads, BLAS on one."""
    with one_blas_thread():
        if workers < 2:
            work()
            return
        with ThreadPoolExecutor(workers, thread_name_prefix="rnnreranker") as pool:
            for done in [pool.submit(work) for _ in range(workers)]:
                done.result()


def rows_of_graph(params: RnnParams) -> None:
    """Raise InputError if rows of raw similarities are divided."""
    if params.scale == "none" and params.normalize:
        raise InputError(f"normalize={params.normalize}: a graph has no whole rows to divide; expected none")
