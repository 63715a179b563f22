"""What methods there are and what settings they have, in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import KINDS, defaults_of, fields_of, find, names
from rnnreranker.base.settings import expected, hints_of, typed_name

TAKEN_BY = {  # kind of method → the flag that takes its written form
    **{"retriever": "--retriever", "feedback": "--prf", "expander": "--expand", "reranker": "--rerank"},
    **{"part": "--parts", "labeler": "--method", "loss": "--loss", "trained-model": "--model"},
}
USUAL = {"reranker": "rnn", "labeler": "evidence", "trained-model": "query"}  # named first, of several that have it


def setting_of(unknown: str, flags: Collection[str]) -> str:
    """Where an unknown flag is a setting of a method, in a command with these flags; "" where it is none.

    >>> setting_of("--k1", ["--retriever"])
    '--k1 is a setting of bm25: --retriever bm25:k1=VALUE'
    """
    name = unknown.removeprefix("--").removeprefix("no-").replace("-", "_")
    takers = [(kind, method, taker) for kind, taker in TAKEN_BY.items() for method in names(kind)]
    for kind, method, taker in sorted(takers, key=lambda one: USUAL.get(one[0]) != one[1]):
        for field in fields_of(find(kind, method)) if taker in flags else ():
            if name in (field.name, typed_name(field)):
                return f"{unknown} is a setting of {method}: {taker} {method}:{field.name}=VALUE"
    return ""


def listed() -> Iterator[str]:
    """Every kind of method with its methods, a line each: the name and what it is."""
    for kind in KINDS:
        yield f"{kind}:"
        for name in names(kind):
            yield f"  {name:22} {first_line(find(kind, name))}"


def described(name: str) -> Iterator[str]:
    """The settings of the methods of a name, a line each; InputError: no such method."""
    kinds = [kind for kind in KINDS if name in names(kind)]
    if not kinds:
        known = sorted({one for kind in KINDS for one in names(kind)})
        raise InputError(f"{name}: no such method, {nearest(name, known)}")
    for kind in kinds:
        method = find(kind, name)
        yield f"{kind} {name}: {first_line(method)}"
        if presets := sorted(method.Params.presets):
            yield f"  preset={'|'.join(presets)}, or a YAML file"
        yield from _settings(defaults_of(method), fields_of(method))
        if inner := getattr(method, "inner", None):
            yield f"and in the same written form those of the {inner[1]} that {inner[0]} names"
        if (of_encoder := getattr(method, "OfEncoder", None)) is not None:
            yield "settings of its encoder, which may stand among them or behind its name, NAME:KEY=VALUE:"
            yield from _settings(of_encoder(), dataclasses.fields(of_encoder))
        if (beside := getattr(method, "Beside", None)) is not None:
            yield f"settings of every {kind}, in the same written form:"
            yield from _settings(beside(), dataclasses.fields(beside))


def _settings(usual: Any, fields: Iterable[dataclasses.Field[Any]]) -> Iterator[str]:
    """Two lines for each setting: its default and what it is, and what it takes."""
    hints = hints_of(type(usual))
    for field in fields:
        yield f"  {field.name}={shown(getattr(usual, field.name))}  {field.metadata.get('help', '')}"
        yield f"    {expected(field, hints[field.name])}"


def first_line(method: Any) -> str:
    """What the docstring of a method says first."""
    return next(iter((method.__doc__ or "").strip().splitlines()), "")


def shown(value: Any) -> str:
    """A value of a setting as its written form has it."""
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
