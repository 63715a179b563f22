"""Arrays in `.npy` files, memory-mapped; the size of a file must be that of its header."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_atomically


def write_array(stream: IO[bytes], array: np.ndarray) -> None:
    """Write an array as `numpy.save` does, but so that every failed write raises an error."""
    np.lib.format.write_array(_Written(stream), array, allow_pickle=False)


def write_header(stream: IO[bytes], kind: Any, shape: tuple[int, ...]) -> None:
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})


def put_array(path: Path, array: np.ndarray) -> None:
    _put(path, partial(write_array, array=array))


def put_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write a `.npz` file whole, so that it survives a kill."""
    _put(path, partial(np.savez, **arrays))


def _put(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    with write_atomically(path) as stream:
        write(stream)
        stream.flush()
        os.fsync(stream.fileno())


class _Written:
    """A stream that NumPy does not take for a file, so that every byte goes through `write`."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.write = stream.write


def map_array(path: Path, repair: str = "write or copy it again") -> np.memmap:
    """The array in a file, memory-mapped read-only, of any shape and of any type but Python objects.

    Args:
        repair: advice in errors about a damaged file.

    Raises:
        InputError: no such file, another format, a bad header, more or fewer bytes than it says.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            array = np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {repair}") from None
    except Exception as error:  # numpy parses headers as Python, and passes what the parser raises
        reason = " ".join(str(error).split())[:80]
        raise InputError(f"{path}: not a whole .npy file of numbers ({reason}); {repair}") from None
    if (size := path.stat().st_size - array.offset) != array.nbytes:
        raise InputError(
            f"{path}: not a whole .npy file ({array.shape} {array.dtype} take {array.nbytes} bytes, it has {size}); "
            f"{repair}"
        )
    return array
