"""Names of arguments in messages: the flag in a command, the name in Python."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, TypeVar

T = TypeVar("T")
FLAGS = {  # arguments of functions whose flags have other names
    "retrieve": "retriever",
    "source": "from",
}
_commands = 0  # of this process, that are at work


@contextlib.contextmanager
def of_command() -> Iterator[None]:
    """The block, or the decorated function, works for a command: messages name flags and are shown."""
    global _commands
    _commands += 1
    try:
        yield
    finally:
        _commands -= 1


@contextlib.contextmanager
def for_others() -> Iterator[None]:
    """The block, inside a command, answers other clients: messages name arguments."""
    global _commands
    before, _commands = _commands, 0
    try:
        yield
    finally:
        _commands = before


def in_command() -> bool:
    return _commands > 0


def argument(name: str, value: Any = None) -> str:
    """An argument as its user wrote it; value: True for a flag without a value.

    >>> argument("hits", 5)
    'hits=5'
    >>> with of_command():
    ...     argument("hits", 5), argument("explain_output")
    ('--hits 5', '--explain-output')
    """
    if in_command():
        return flag(FLAGS.get(name, name)) + ("" if value is None or value is True else f" {value}")
    return name if value is None else f"{name}={value}"


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")
