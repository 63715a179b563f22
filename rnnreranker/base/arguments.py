"""Names of arguments in messages: the flag in a command, the name in Python."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from rnnreranker.base.errors import cut

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
