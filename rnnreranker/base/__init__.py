"""What all folders use, and the late import of a module's names, which keeps its own import fast."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from typing import Any


def late_names(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a module for the names that it imports `if TYPE_CHECKING`, as `X as X`."""

    @cache
    def homes() -> dict[str, str]:
        import re

        spec = sys.modules[module].__spec__
        source = spec.loader.get_source(module)  # type: ignore[union-attr]
        return {name: home for home, name in re.findall(r"^    from (\S+) import (\w+) as \2$", source, re.MULTILINE)}

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        if name.startswith("__") or name not in homes():
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes()[name]), name)

    return get, lambda: sorted([*vars(sys.modules[module]), *homes()])
