"""Of ir_datasets 0.5.9 to 0.5.11: the names of all data sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

USED = {"ir_datasets.registry": ("_registered",)}


def known_names(ir_datasets: Any) -> Iterable[str]:
    """The ids that `ir_datasets.load` takes; empty if the list is missing."""
    return list(getattr(ir_datasets.registry, "_registered", ()))
