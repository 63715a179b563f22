"""Values that Python callers give: counts, arrays and tensors, each checked with one clear line."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError


def count_of(value: Any, argument: str) -> int:
    """A count of at least one, as a plain integer.

    Raises:
        InputError: no integer, or below 1; `True` and `2.0` are no integers.

    >>> count_of(np.int64(3), "hits")
    3
    >>> count_of(2.0, "hits")
    Traceback (most recent call last):
    rnnreranker.base.errors.InputError: hits=2.0: expected an integer >= 1
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise InputError(f"{argument}={value!r}: expected an integer >= 1")
    return int(value)


def array_of(values: Any, argument: str) -> np.ndarray:
    """An array of numbers from an array, a list, or a tensor of any device and type, bfloat16 too.

    Raises:
        InputError: no real numbers, or rows of different lengths.

    >>> array_of([[1, 2], [3, 4]], "vectors").shape
    (2, 2)
    >>> array_of(["a"], "scores")
    Traceback (most recent call last):
    rnnreranker.base.errors.InputError: scores: a list of <U1; expected numbers
    """
    if hasattr(values, "detach"):  # a tensor of torch: NumPy has no bfloat16
        tensor = values.detach().cpu()
        given = (tensor.float() if tensor.is_floating_point() and tensor.itemsize < 4 else tensor).numpy()
    else:
        if isinstance(values, (list, tuple)) and any(hasattr(value, "detach") for value in values):
            values = [array_of(value, argument) for value in values]
        try:
            given = np.asarray(values)
        except (TypeError, ValueError):
            raise InputError(
                f"{argument}: a {type(values).__name__} whose rows differ in length; expected as many numbers in each"
            ) from None
    if given.dtype.name.startswith("bfloat16"):  # of ml_dtypes, as JAX has it
        given = given.astype(np.float32)
    if given.dtype.kind not in "fiu" and given.size:
        raise InputError(f"{argument}: a {type(values).__name__} of {given.dtype}; expected numbers")
    return given
