"""Values from Python callers: paths, ids, counts, arrays and tensors, each with one clear line if it is wrong."""

from __future__ import annotations

import errno
import numbers
import os
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError, brief

if TYPE_CHECKING:
    import numpy as np


def path_of(value: Any, expected: str = "a path", argument: str = "") -> Path:
    """A path, `~` expanded; expected: its meaning, for messages.

    Raises:
        InputError: neither a text nor a path, or a name that no file can have.
    """
    got = f"{argument}: got {brief(value)}; expected {expected}" if argument else f"{brief(value)}: expected {expected}"
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise InputError(got)
    path = Path(value).expanduser()
    try:
        os.stat(path)
    except (OSError, ValueError) as error:  # ValueError: NUL, or what is no Unicode text
        if not isinstance(error, OSError) or error.errno == errno.ENAMETOOLONG:
            raise InputError(f"{got}, and no file can have this name") from None
    return path


def ids_of(values: Any, argument: str) -> tuple[str, ...]:
    """Ids of a list, a tuple, an array or a Series, in their order.

    Raises:
        InputError: one text, something without an order, an element that is no text.
    """
    scalar = getattr(values, "shape", None) == ()
    if scalar or isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise InputError(f"{argument}={brief(values)}: expected a list of ids")
    ids = tuple(values)
    if strange := [one for one in ids if not isinstance(one, str)]:
        raise InputError(f"{argument}: {brief(strange[0])} is no text; expected ids, as 'q1'")
    return ids


def instance_of(value: Any, kind: Any, argument: str) -> Any:
    if not isinstance(value, kind):
        raise InputError(f"{argument}={brief(value)}: expected {kind.__name__}")
    return value


def count_of(value: Any, argument: str) -> int:
    """A count of at least one; InputError: below 1, or no integer, as `True` and `2.0`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise InputError(f"{argument}={brief(value)}: expected an integer >= 1")
    return int(value)


def array_of(values: Any, argument: str) -> np.ndarray:
    """An array of numbers from an array, a list, or a tensor of any device and type, bfloat16 too.

    Raises:
        InputError: no real numbers, or rows of different lengths.
    """
    import numpy as np

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


def numbers_of(values: Any, argument: str, shape: tuple[int, ...]) -> np.ndarray:
    """Finite real numbers as float64 of a shape, from the values that `array_of` takes.

    Raises:
        InputError: something else, another shape, NaN or infinity.
    """
    import numpy as np

    array = array_of(values, argument)
    if array.shape != shape or not np.isfinite(array).all():
        raise InputError(f"{argument}={brief(values)}: expected finite numbers of shape {shape}")
    return array.astype(np.float64)


def is_utf8(text: str) -> bool:
    """Whether a text can be written as UTF-8; halves of surrogate pairs cannot.

    >>> is_utf8("Ada"), is_utf8("\\ud800")
    (True, False)
    """
    return text.encode(errors="ignore").decode() == text
