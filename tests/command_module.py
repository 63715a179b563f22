"""The module of a command."""

from __future__ import annotations

import importlib
from typing import Any

from rnnreranker.base.method import PACKAGE


def module_of(name: str) -> Any:
    """The imported module with `main` and `make_parser` of `python -m rnnreranker.NAME`."""
    return importlib.import_module(f"rnnreranker.{name}{'.__main__' if (PACKAGE / name).is_dir() else ''}")
