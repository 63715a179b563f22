"""In which order settings are listed that a class adds to those it inherits."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from rnnreranker.base.settings import Params

K = TypeVar("K", bound=type[Params])


def in_order(kind: K) -> K:
    """A dataclass with its own fields among those it inherits: where `before` says, each behind the one above it."""
    fields: dict[str, dataclasses.Field[Any]] = kind.__dataclass_fields__
    names = [field.name for field in dataclasses.fields(kind.__base__)]  # type: ignore[arg-type]
    position = len(names)
    for field in [field for field in dataclasses.fields(kind) if field.name not in names]:
        before = field.metadata.get("before")
        position = names.index(before) if before else position
        names.insert(position, field.name)
        position += 1
    kind.__dataclass_fields__ = {name: fields[name] for name in dict.fromkeys([*names, *fields])}
    return kind
