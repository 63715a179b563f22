"""The table of methods in the docs: what each computes, what it needs, its settings with their limits."""

from __future__ import annotations

import dataclasses
from typing import Any

from rnnreranker import __name__ as PACKAGE
from rnnreranker.method import KINDS, methods
from rnnreranker.settings import Params, expected, flag, hints_of


def method_tables() -> dict[str, list[dict[str, Any]]]:
    """Kind → its methods, each with name, about, needs and settings; those of this package, wherever it runs."""
    return {
        kind: [
            {
                "name": name,
                "about": (found.__doc__ or "").strip().splitlines()[0],
                "needs": ", ".join(sorted(found.needs)) or "nothing besides",
                "settings": settings(found.Params),
                "presets": ", ".join(found.Params.presets),
            }
            for name, found in methods(kind).items()
            if found.__module__.split(".")[0] == PACKAGE
        ]
        for kind in KINDS
    }


def settings(params: type[Params]) -> list[dict[str, str]]:
    """Flag, default, what is expected and meaning of every field."""
    hints = hints_of(params)
    return [
        {
            "flag": flag(field.name),
            "default": "none"
            if field.default is None
            else str(field.default).lower()
            if isinstance(field.default, bool)
            else str(field.default),
            "expected": expected(field, hints[field.name]),
            "about": field.metadata.get("help", ""),
        }
        for field in dataclasses.fields(params)
    ]
