"""Conversions between Arrow, Python and NumPy without importing pandas, as `pyarrow.array` and `to_numpy` do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow


def strings(names: Iterable[str]) -> pyarrow.Array:
    """An array of strings.

    >>> strings(["a", "é"]).to_pylist()
    ['a', 'é']
    """
    import pyarrow

    builder = pyarrow.lib.StringBuilder()
    builder.append_values(names)
    return builder.finish()


def numbers(values: np.ndarray) -> pyarrow.Array:
    """An array of numbers that shares NumPy's memory.

    >>> numbers(np.array([3, 1])).to_pylist()
    [3, 1]
    """
    import pyarrow

    kind = getattr(pyarrow, str(values.dtype))()
    return pyarrow.Array.from_buffers(kind, len(values), [None, pyarrow.py_buffer(np.ascontiguousarray(values))])


def as_numpy(array: pyarrow.Array) -> np.ndarray:
    """The numbers of an array, read-only; undefined at nulls.

    >>> as_numpy(numbers(np.array([3, 1], dtype=np.int32))[1:])
    array([1], dtype=int32)
    """
    values = np.frombuffer(array.buffers()[1] or b"", dtype=str(array.type))
    return values[array.offset : array.offset + len(array)]
