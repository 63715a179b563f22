"""One family of errors, each a single clear line, and the lazy import of optional packages."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType

SHOWN = 12  # names listed when none is near


class RnnrerankerError(Exception):
    """Base of every error that this package raises on purpose; the commands turn it into one line and exit code 2."""


class InputError(RnnrerankerError, ValueError):
    """What was given cannot be used: the message says what was received, where, what was expected, what to do next."""


class ParameterError(InputError):
    """Parameters that are in range fail on these data, as an exponential weight that overflows; others may not."""


class UnavailableError(RnnrerankerError):
    """Something outside the program cannot be had here: data, an index, Java, the network."""


class MissingDependencyError(RnnrerankerError, ImportError):
    """An optional Python package is not installed; the message says how to install it."""


def refuse(*faults: tuple[object, str]) -> None:
    """Say everything that is wrong at once.

    Args:
        faults: whether something is wrong, and what to say then.

    Raises:
        InputError: the messages of what is wrong.

    >>> refuse((False, "--a is missing"), (True, "--b is missing"))
    Traceback (most recent call last):
    rnnreranker.errors.InputError: --b is missing
    """
    if said := [message for wrong, message in faults if wrong]:
        raise InputError("; ".join(said))


def require(module: str, purpose: str, install: str) -> ModuleType:
    """The imported module, or an error that says what it is needed for and how to get it.

    Raises:
        MissingDependencyError: when the module is not installed.

    >>> require("json", "reading JSON", "comes with Python").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] != module.split(".")[0]:
            raise  # the package is there, one of its own dependencies is not: show that one
        name = module.split(".")[0]
        raise MissingDependencyError(f"{name} is needed for {purpose}: {_how_to(install)}") from None


def _how_to(install: str) -> str:
    """How to install something; the extras of this package from a checkout too, as it need not be on an index.

    >>> _how_to("'rnnreranker[train]'")
    "pip install '.[train]' in the checkout, or 'rnnreranker[train]'"
    >>> _how_to("faiss-cpu")
    'pip install faiss-cpu'
    """
    if install.startswith("'rnnreranker["):
        return f"pip install {install.replace('rnnreranker', '.')} in the checkout, or {install}"
    return f"pip install {install}"


def nearest(name: str, known: Iterable[str], limit: int = 3) -> str:
    """A hint that lists the known names most like `name`, to end an error message with.

    >>> nearest("tas_b", ["tas-b", "cocondenser"])
    'did you mean tas-b?'
    >>> nearest("zzz", ["b", "a"])
    'known: a, b'
    >>> nearest("zzz", map(str, range(100)))
    'known: 0, 1, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 and 88 more'
    """
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=limit, cutoff=0.55)
    if close:
        return f"did you mean {' or '.join(close)}?"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return "known: " + ", ".join(names[:SHOWN]) + more
