"""Requests of commands and functions: arguments that are checked by their types, and the share of a process."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.settings import checked, setting

T = TypeVar("T")


def asked(kind: type[T], given: Mapping[str, Any]) -> T:
    """The request of a call from Python; InputError: unknown arguments, with the nearest names."""
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    if unknown := [name for name in given if name not in known]:
        raise InputError("; ".join(f"no argument {name}, {nearest(name, known)}" for name in unknown))
    return kind(**given)


class Request:
    """The arguments of a command or a library function; a subclass is a frozen dataclass.

    Raises:
        InputError: arguments of other types, or out of range, in one message.
    """

    def __post_init__(self) -> None:
        problems = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value, kinds = getattr(self, field.name), kinds_of(str(field.type))
            if number := next((NUMBERS[kind] for kind in kinds if kind in NUMBERS), None):
                value, problem = checked(field, number | None if "None" in kinds else number, value)
                object.__setattr__(self, field.name, value)
            else:
                words, problem = field.metadata.get("one_of", list)(), ""
                if not _is_one_of(value, kinds):
                    problem = f"{argument(field.name)}: got {_name(value)}; expected {' or '.join(kinds)}"
                elif words and isinstance(value, str) and value not in words:
                    problem = f"{argument(field.name, value)}: {nearest(value, words)}"
            problems += [problem] if problem else []
        if problems:
            raise InputError("; ".join(problems))

    def shown(self, name: str) -> str:
        """An argument's path or name, for messages; of an object the argument's name."""
        value = getattr(self, name)
        return str(value) if isinstance(value, str | Path) else argument(name)


NUMBERS: dict[str, Any] = {"int": int, "float": float, "bool": bool}
TYPES: dict[str, Any] = {
    "str": str,
    "Path": os.PathLike,
    "Mapping": Mapping,
    "Sequence": (list, tuple),
    "None": type(None),
}
CLASSES = (
    "Written",
    "Run",
    "IndexOnDisk",
    "QueryVectors",
    "ndarray",
    "DataFrame",
    "SoftLabels",
)  # imported when needed
ALIASES = {"Form": "str | Mapping | Written", "Qrels": "str | Path | Mapping | Sequence | DataFrame"}


@functools.cache
def kinds_of(annotation: str) -> tuple[str, ...]:
    """The names of the types of an annotation, without modules and parameters."""
    while (shorter := re.sub(r"\[[^][]*\]", "", annotation)) != annotation:
        annotation = shorter
    names = [name.strip().rpartition(".")[2] for name in annotation.split("|")]
    return tuple(dict.fromkeys(one for name in names for one in _of_alias(name)))


def _of_alias(name: str) -> tuple[str, ...]:
    return kinds_of(ALIASES[name]) if name in ALIASES else (name,)


def _is_one_of(value: Any, kinds: tuple[str, ...]) -> bool:
    """Whether a value has one of these types; True if a type is unknown here."""
    if any(kind not in TYPES and kind not in CLASSES for kind in kinds):
        return True
    names = {one.__name__ for one in type(value).__mro__}
    return any(isinstance(value, TYPES[kind]) if kind in TYPES else kind in names for kind in kinds)


def _name(value: Any) -> str:
    shown = repr(value) if isinstance(value, str | bytes | int | float | None) else ""
    return shown if 0 < len(shown) <= 40 else type(value).__name__


Share = tuple[int, int]  # its number, from 0, and how many there are


@dataclass(frozen=True)
class ShareRequest(Request):
    """The share of a process: of encoded documents, of blocks of a graph, of labels."""

    shard_id: int | None = setting(None, "the share to make, from 0 (default: assemble them)", metavar="I")
    shard_num: int | None = setting(None, "how many shares there are", at_least=1)

    @property
    def share(self) -> Share | None:
        """The share of this process, None = the whole; InputError: as `share_of`."""
        return share_of(self.shard_id, self.shard_num)


def share_of(shard_id: int | None, shard_num: int | None) -> Share | None:
    """The share (number, count), None = the whole; InputError: one without the other, or a number outside 0..N-1."""
    if shard_id is None and shard_num is None:
        return None
    if shard_id is None or shard_num is None:
        both = f"{argument('shard_id')} and {argument('shard_num')}"
        raise InputError(f"{both} go together: give both, or neither to put the shares together")
    if not 0 <= shard_id < shard_num:
        last = f"expected 0..{shard_num - 1}, as {argument('shard_num', shard_num)} are counted from 0"
        raise InputError(f"{argument('shard_id', shard_id)}: no such share; {last}")
    return shard_id, shard_num
