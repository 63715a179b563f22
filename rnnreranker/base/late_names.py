"""Names that a package hands on and that are imported when somebody asks for them, so that importing it stays light."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def late_names(package: str, homes: Mapping[str, str], of: str | None = None) -> Callable[[str], Any]:
    """The `__getattr__` of a module that hands on names.

    Args:
        package: the module's `__name__`; homes: name → the module that defines it, below `of`.
        of: a package; None = the module itself.

    >>> late_names("rnnreranker.runs", {"Run": "run"})("Run").__name__
    'Run'
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{of or package}.{homes[name]}"), name)

    return get
