"""What a part of the benchmark is."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rnnreranker.lab.bench.sizes import Sizes

Rows = list[dict[str, Any]]  # of a part, all with the same cells


@dataclass(frozen=True)
class BenchPart:
    """A table of the benchmark: its title, a sentence on what is measured, and the function that measures it.

    Attributes:
        function: module of this room and name, imported when it is called: not every part needs every package.
        arguments: what it is called with, by the sizes.
        derived: tables that are computed of the rows: title and note of each, and the function.
    """

    title: str
    note: str
    function: str
    arguments: Callable[[Sizes], tuple[Any, ...]]
    derived: tuple[tuple[str, str, str], ...] = ()

    def measure(self, sizes: Sizes) -> Rows:
        """The rows of the table."""
        rows: Rows = _function(self.function)(*self.arguments(sizes))
        return rows

    def compute(self, rows: Rows) -> list[dict[str, Any]]:
        """The tables that are computed of measured rows: title, note and rows of each."""
        return [{"title": title, "note": note, "rows": _function(name)(rows)} for title, note, name in self.derived]


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.rpartition(".")
    measure: Callable[..., Any] = getattr(importlib.import_module(f"rnnreranker.lab.bench.{module}"), function)
    return measure
