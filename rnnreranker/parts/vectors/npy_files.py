"""Arrays in `.npy` files, memory-mapped: the header must be valid, and the size of the file must match it."""

from __future__ import annotations

import math
import os
import warnings
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_atomically

MAGIC = b"\x93NUMPY"
ZIP = b"PK"  # what an .npz file begins with
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def write_array(stream: IO[bytes], array: np.ndarray) -> None:
    """Write an array as `numpy.save` does, but so that every failed write raises an error."""
    np.lib.format.write_array(_Written(stream), array, allow_pickle=False)


def write_header(stream: IO[bytes], kind: Any, shape: tuple[int, ...]) -> None:
    """Write the header of an array in C order, whose bytes follow."""
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})


def put_array(path: Path, array: np.ndarray) -> None:
    """Write an array into a file that appears when it is complete."""
    with write_atomically(path) as stream:
        write_array(stream, array)
        stream.flush()
        os.fsync(stream.fileno())


class _Written:
    """A stream that NumPy does not take for a file, so that every byte goes through `write`."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.write = stream.write


def map_array(path: Path, repair: str = "write or copy it again") -> np.ndarray:
    """The array in a file, memory-mapped read-only, of any shape and of any type but Python objects.

    Nothing is unpickled or allocated before the file's size matches its header.

    Args:
        repair: advice in errors about a damaged file.

    Raises:
        InputError: no such file, another format, a bad header, more or fewer bytes than it says.
    """
    try:
        with open(path, "rb") as stream:
            if stream.read(2) == ZIP:
                raise InputError(f"{path}: an .npz archive; expected one array in a .npy file: save it by numpy.save")
            stream.seek(0)
            if (magic := stream.read(len(MAGIC))) != MAGIC:
                what = "an empty file" if not magic else "not a whole .npy file (it does not begin as one)"
                raise InputError(f"{path}: {what}; {repair}")
            stream.seek(0)
            shape, by_columns, dtype = _header(stream, path, repair)
            start, size = stream.tell(), os.fstat(stream.fileno()).st_size
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {repair}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    if dtype.hasobject:
        raise InputError(f"{path}: has Python objects, which can run any code when they are read; save plain numbers")
    expected = math.prod(shape) * dtype.itemsize
    if size - start != expected or any(length < 0 for length in shape):
        raise InputError(
            f"{path}: not a whole .npy file ({_shown(shape)} of {dtype} take {expected} bytes, it has {size - start}); "
            f"{repair}"
        )
    if expected == 0:  # which cannot be mapped
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", start, shape, "F" if by_columns else "C")


def _header(stream: BinaryIO, path: Path, repair: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether the order is Fortran's, and type."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            version = np.lib.format.read_magic(stream)
            if version not in HEADERS:
                raise ValueError(f"version {version[0]}.{version[1]}")
            shape, by_columns, dtype = HEADERS[version](stream)
        if not all(type(length) is int for length in shape):  # numpy takes True for 1
            raise ValueError("a shape that is not of integers")
        return shape, bool(by_columns), dtype
    except Exception as error:  # numpy parses it as Python, and lets through what the parser raises
        said = " ".join(str(error).split())[:80]
        raise InputError(f"{path}: not a whole .npy file (its header: {said}); {repair}") from None


def _shown(shape: tuple[int, ...]) -> str:
    return f"values of shape {shape}"[:80]
