"""Of CPython 3.11 to 3.13: what it does at its end, how it imports, and the flags that a parser has."""

from __future__ import annotations

import atexit
import importlib
import threading
from collections.abc import Callable
from typing import Any

USED = {
    "threading": ("_shutdown",),
    "atexit": ("_run_exitfuncs",),
    "importlib._bootstrap": ("_find_and_load",),
    "argparse.ArgumentParser": ("_get_optional_actions",),
}


def end_quickly() -> None:
    """Wait for threads and do what is registered for the end; what is left is taking libraries to pieces."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()


def around_imports(wrapped: Callable[[Any], Any]) -> None:
    """Put a function around what finds and loads every module that is imported from now on."""
    system: Any = importlib._bootstrap
    system._find_and_load = wrapped(system._find_and_load)


def flags_of_parser(parser: Any) -> list[str]:
    """All flags of a command's parser, in their order."""
    return [flag for action in parser._get_optional_actions() for flag in action.option_strings]
