"""Requests of commands and functions: arguments that are checked by their types, and the share of a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.settings import Checked, hints_of, setting

T = TypeVar("T")


def asked(kind: type[T], given: Mapping[str, Any]) -> T:
    """The request of a call from Python; InputError: unknown arguments, with the nearest names."""
    known = hints_of(kind)
    if unknown := [name for name in given if name not in known]:
        raise InputError("; ".join(f"no argument {name}, {nearest(name, known)}" for name in unknown))
    return kind(**given)


class Request(Checked):
    """The arguments of a command or a library function; a subclass is a frozen dataclass.

    Raises:
        InputError: arguments of other types, or out of range, in one message.
    """

    def shown(self, name: str) -> str:
        """An argument's path or name, for messages; of an object the argument's name."""
        value = getattr(self, name)
        return str(value) if isinstance(value, str | Path) else argument(name)


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
