"""Arrays in `.npy` files, memory-mapped; the size of a file must be that of its header."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_atomically


def write_header(stream: IO[bytes], kind: Any, shape: tuple[int, ...]) -> None:
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})


def write_array(stream: IO[bytes], array: np.ndarray) -> None:
    """Write the bytes of `numpy.save`, but so that every failed write raises an error."""
    write_header(stream, np.lib.format.dtype_to_descr(array.dtype), array.shape)
    stream.write(array.tobytes())


def put_array(path: Path, array: np.ndarray | Mapping[str, Any]) -> None:
    """Write a `.npy` file, or several arrays by name as a `.npz` file, whole, so that it survives a kill."""
    with write_atomically(path) as stream:
        if isinstance(array, np.ndarray):
            write_array(stream, array)
        else:
            np.savez(stream, **array)
        stream.flush()
        os.fsync(stream.fileno())


def map_array(path: Path, repair: str = "write or copy it again") -> np.memmap:
    """The array in a file, memory-mapped read-only, of any shape and of any type but Python objects.

    Args:
        repair: advice in errors about a damaged file.

    Raises:
        InputError: no such file, another format, a bad header, more or fewer bytes than it says.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; {repair}")
    try:
        with warnings.catch_warnings(action="ignore"):
            array = np.lib.format.open_memmap(path, mode="r")
        if (size := path.stat().st_size - array.offset) != array.nbytes:
            raise ValueError(f"{array.shape} {array.dtype} take {array.nbytes} bytes, it has {size}")
    except Exception as error:  # numpy parses headers as Python, and passes what the parser raises
        reason = " ".join(str(error).split())[:80]
        raise InputError(f"{path}: not a whole .npy file of numbers ({reason}); {repair}") from None
    return array


def map_matrix(path: Path) -> np.memmap:
    """(n, d) float32 or float16, memory-mapped; InputError: not a whole `.npy` file, or another shape or type."""
    matrix = map_array(path)
    if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype not in (np.float32, np.float16):
        raise InputError(
            f"{path}: has shape {matrix.shape} and type {matrix.dtype}; expected (rows, dimensions), at least one of "
            "each, float32 or float16"
        )
    return matrix
