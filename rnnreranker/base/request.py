"""Requests of commands and functions: arguments that are checked by their types, and the share of a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Checked, check_names, hints_of, setting

T = TypeVar("T")


def asked(kind: type[T], given: Mapping[str, Any]) -> T:
    """The request of a call from Python; InputError: unknown arguments, with the nearest names."""
    return kind(**check_names(given, hints_of(kind), "argument"))


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
        """The share of this process, None = the whole; InputError: one without the other, a number outside 0..N-1."""
        number, count = self.shard_id, self.shard_num
        if number is None and count is None:
            return None
        if number is None or count is None:
            both = f"{argument('shard_id')} and {argument('shard_num')}"
            raise InputError(f"{both} go together: give both, or neither to put the shares together")
        if not 0 <= number < count:
            last = f"expected 0..{count - 1}, as {argument('shard_num', count)} are counted from 0"
            raise InputError(f"{argument('shard_id', number)}: no such share; {last}")
        return number, count
