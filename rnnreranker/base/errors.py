"""Errors of one clear line: names of arguments, checks of values from Python callers, optional packages."""

from __future__ import annotations

import contextlib
import difflib
import errno
import importlib
import numbers
import os
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


SHOWN = 12  # names listed when none is near


class RnnrerankerError(Exception):
    """Base of all errors of this package; commands print one line and exit with code 2."""

    def __str__(self) -> str:
        return re.sub(r"\s*\n\s*", " ", super().__str__())


class InputError(RnnrerankerError, ValueError):
    """Bad input: the message names the value, its location, the expected values and the remedy."""


class ParameterError(InputError):
    """Valid parameters that fail on these data, as an exponential weight that overflows."""


class UnavailableError(RnnrerankerError):
    """Something outside the program is missing: data, an index, Java, the network."""


class DataWarning(UserWarning):
    """Data that look wrong; the work goes on. The message names what to check."""


class MissingDependencyError(RnnrerankerError, ImportError):
    """An optional Python package is not installed; the message has the command that installs it."""


Fault = tuple[object, str] | Callable[[], object]  # whether it is one, and its message; or a call that raises it


def refuse(*faults: Fault) -> None:
    """Raise InputError with the messages of all faults, each once and in their order."""
    said: dict[str, None] = {}
    for fault in faults:
        if isinstance(fault, tuple):
            said |= {fault[1]: None} if fault[0] else {}
            continue
        try:
            fault()
        except InputError as error:
            said[str(error)] = None
    if said:
        raise InputError("; ".join(said))


def require(module: str, purpose: str, install: str) -> ModuleType:
    """The imported module.

    Raises:
        MissingDependencyError: the module is not installed; names `purpose` and how to `install` it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        name = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != name:
            raise  # the package is there, one of its own dependencies is not: show that one
        own = f"{install.replace('rnnreranker', '.')} in the checkout, or " if "rnnreranker[" in install else ""
        raise MissingDependencyError(f"{name} is needed for {purpose}: pip install {own}{install}") from None


REASONS = [os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)]
OTHERS = ("database or disk is full", "failed writing file", r"\d+ requested and \d+ written")
FULL = re.compile("(?i)" + "|".join([*REASONS, *OTHERS]))
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def shown(text: str) -> str:
    """A text for a terminal: control characters become escapes; breaks and tabs stay.

    >>> print(shown("a\\x1b[31mb"))
    a\\x1b[31mb
    """
    return UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def brief(value: object, most: int = 80) -> str:
    """A value in one line of a message: the beginning of a long one, the shape and type of an array.

    >>> brief([1, 2]), brief("x" * 90, 5)
    ('[1, 2]', "'xxxx... of 92 characters")
    """
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{type(value).__name__} of shape {value.shape} and type {value.dtype}" if value.shape else repr(value)
    return cut(" ".join(repr(value).split()), most)


def cut(text: str, most: int = 200) -> str:
    """A text, or the beginning of a long one, for messages."""
    return text if len(text) <= most else f"{text[:most]}... of {len(text)} characters"


def no_space(error: BaseException | str | None) -> str:
    """The reason of a failed write if it is the disk, also in causes and texts; else ""."""
    while error:
        if match := FULL.search(str(error)):
            return match[0] if match[0] in REASONS else REASONS[0]  # SQLite, torch and NumPy say no more
        error = None if isinstance(error, str) else error.__cause__ or error.__context__
    return ""


def said_of(error: Exception) -> str:
    if isinstance(error, RnnrerankerError):
        return str(error)
    of_file = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
    if reason := no_space(error):
        return f"{of_file}cannot be written ({reason}); make room or choose another disk, then run the command again"
    if isinstance(error, MemoryError) or re.search("(?i)cannot allocate memory|failed to map segment", str(error)):
        return f"not enough memory ({error or 'no more to be had'}); free some, or ask for less at a time"
    if isinstance(error, OSError):
        return f"{of_file}{error.strerror or error}; check the path and its permissions"
    frame = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" at {os.path.basename(frame[0].filename)}:{frame[0].lineno}" if frame else ""
    return (
        f"nobody foresaw {type(error).__name__}{where}: {error}; this is a fault of the program: run the command again "
        "with RNNRERANKER_TRACEBACK=1 and report what it prints"
    )


def nearest(name: str, known: Iterable[str], limit: int = 3) -> str:
    """A hint with the known names nearest to `name`, for the end of a message.

    >>> nearest("tas_b", ["tas-b", "cocondenser"])
    'did you mean tas-b?'
    """
    names = sorted(set(map(str, known)))
    close = difflib.get_close_matches(name, names, n=limit, cutoff=0.55)
    if close:
        return f"did you mean {' or '.join(close)}?"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return "known: " + (", ".join(names[:SHOWN]) or "none") + more


FLAGS = {  # arguments of functions whose flags have other names
    "retrieve": "retriever",
    "source": "from",
}
_named_flags = False  # whether messages name flags


@contextlib.contextmanager
def of_command(flags: bool = True) -> Iterator[None]:
    """The block, or the decorated function, works for a command: messages name flags and are shown."""
    global _named_flags
    before, _named_flags = _named_flags, flags
    try:
        yield
    finally:
        _named_flags = before


def for_others() -> AbstractContextManager[None]:
    """The block, inside a command, answers other clients: messages name arguments."""
    return of_command(False)


def in_command() -> bool:
    return _named_flags


def argument(name: str, value: Any = None) -> str:
    """An argument as its user wrote it; value: True for a flag without a value.

    >>> argument("hits", 5)
    'hits=5'
    >>> with of_command():
    ...     argument("hits", 5), argument("explain_output")
    ('--hits 5', '--explain-output')
    """
    if in_command():
        return flag(FLAGS.get(name, name)) + ("" if value is None or value is True else f" {cut(str(value))}")
    return name if value is None else f"{name}={cut(str(value))}"


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


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
    if np.ma.is_masked(values):
        raise InputError(f"{argument}: a masked array; expected numbers for all, as values.filled(…) or without masked")
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
