"""A flag for every setting of the methods of a kind: of `study` and `tune train`, whose trainings are set by flags."""

from __future__ import annotations

import dataclasses
from typing import Any

from rnnreranker.base.command import add_flag, shown_default
from rnnreranker.base.method import defaults_of, fields_of, methods
from rnnreranker.base.settings import hints_of, typed_name


def add_method_flags(group: Any, kind: str) -> None:
    """One flag per parameter of all methods of a kind, those that several have once; the help names the methods."""
    homes: dict[str, tuple[dataclasses.Field[Any], Any, dict[str, list[str]]]] = {}
    for name, method in methods(kind).items():
        usual = defaults_of(method)
        for field in fields_of(method):
            defaults = homes.setdefault(field.name, (field, hints_of(method.Params)[field.name], {}))[2]
            defaults.setdefault(shown_default(getattr(usual, field.name)), []).append(name)
    for field, hint, defaults in homes.values():
        own = [name for its in defaults.values() for name in its]
        most = max(defaults, key=lambda default: len(defaults[default]))
        others = "".join(f", of {', '.join(its)}: {default}" for default, its in defaults.items() if default != most)
        of = "" if len(own) == len(methods(kind)) else f"of {', '.join(own)}; "
        add_flag(group, field, hint, f"{of}default: {most}{others}")


def given_of(args: Any, kind: str) -> dict[str, Any]:
    """The parameters of any method of a kind that were typed on the command line."""
    fields = {field.name: field for method in methods(kind).values() for field in fields_of(method)}
    typed = {name: getattr(args, typed_name(fields[name]), None) for name in sorted(fields)}
    return {name: value for name, value in typed.items() if value is not None}
