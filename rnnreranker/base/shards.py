"""A process's share of a job, in Pyserini's words: `--shard-id I --shard-num N`."""

from __future__ import annotations

from typing import Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import positive
from rnnreranker.base.errors import InputError

Share = tuple[int, int]  # its number, from 0, and how many there are


def add_flags(group: Any, what: str) -> None:
    """The flags --shard-id and --shard-num; what: is made in shares."""
    text = f"the share of {what} to make, from 0 (default: assemble them)"
    group.add_argument("--shard-id", type=int, metavar="I", help=text)
    group.add_argument("--shard-num", type=positive, metavar="N", help="how many shares there are")


def share_of(shard_id: int | None, shard_num: int | None) -> Share | None:
    """The share of two arguments; None = the whole.

    >>> share_of(0, 4)
    (0, 4)

    Raises:
        InputError: one without the other, a number that there is not.
    """
    if shard_id is None and shard_num is None:
        return None
    if shard_id is None or shard_num is None:
        both = f"{argument('shard_id')} and {argument('shard_num')}"
        raise InputError(f"{both} go together: give both, or neither to put the shares together")
    if not 0 <= shard_id < shard_num:
        last = f"expected 0..{shard_num - 1}, as {argument('shard_num', shard_num)} are counted from 0"
        raise InputError(f"{argument('shard_id', shard_id)}: no such share; {last}")
    return shard_id, shard_num
