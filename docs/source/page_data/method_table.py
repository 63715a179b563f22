"""The table of methods in the docs: what each computes, what it needs, its settings with their limits."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from rnnreranker import __name__ as PACKAGE
from rnnreranker.base.method import KINDS, methods
from rnnreranker.base.settings import Params, hints_of, shown


class KindTable(NamedTuple):
    """Methods of a kind: name, what it computes, what it needs, presets; and settings, those that are alike once."""

    group: str  # of entry points, under which another package brings such methods
    methods: list[tuple[str, str, str, str]]
    settings: list[tuple[str, str, str, str, list[str]]]  # setting, default, limits, meaning, methods that have it


def method_tables() -> dict[str, KindTable]:
    """The methods of this package by kind; those of other packages would differ from machine to machine."""
    kinds = {}
    for kind, (_, group, _) in KINDS.items():
        own = {name: one for name, one in methods(kind).items() if one.__module__.split(".")[0] == PACKAGE}
        sharing: dict[tuple[str, str, str, str], list[str]] = {}
        for name, one in own.items():
            for row in settings_of(one.Params):
                sharing.setdefault(row, []).append(name)
        settings = sorted(
            ((*row, names) for row, names in sharing.items()), key=lambda row: (-len(row[4]), row[4], row)
        )
        kinds[kind] = KindTable(group, [(name, *_about(one)) for name, one in own.items()], settings)
    return kinds


def settings_of(params: type[Params]) -> list[tuple[str, str, str, str]]:
    """Name, default, limits and meaning of every field."""
    return [
        (name, _default(hint.field), hint.expected, hint.field.metadata.get("help", ""))
        for name, hint in hints_of(params).items()
    ]


def _about(method: Any) -> tuple[str, str, str]:
    computes = (method.__doc__ or "").strip().splitlines()[0]
    made_by = " or ".join(method.made_of) or method.encoder if hasattr(method, "made_of") else ""
    needs = made_by or ", ".join(sorted(getattr(method, "needs", ())))
    return computes, needs, ", ".join(_shown(method.Params))


def _shown(params: type[Params]) -> list[str]:
    """The names of the presets; of those that are not published values, with that."""
    return [f"{name} (ours)" if name in params.ours else name for name in params.presets]


def _default(field: dataclasses.Field[Any]) -> str:
    return shown(field.default)
