"""A process's share of a job, in Pyserini's words: `--shard-id I --shard-num N`."""

from __future__ import annotations

from dataclasses import dataclass

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.request import Request
from rnnreranker.base.settings import setting

Share = tuple[int, int]  # its number, from 0, and how many there are


@dataclass(frozen=True)
class ShareRequest(Request):
    """The share that a process makes of what encoders make, of blocks of a graph, of labels."""

    shard_id: int | None = setting(None, "the share to make, from 0 (default: assemble them)", metavar="I")
    shard_num: int | None = setting(None, "how many shares there are", at_least=1)

    @property
    def share(self) -> Share | None:
        """The share of this process, None = the whole; InputError: as `share_of`."""
        return share_of(self.shard_id, self.shard_num)


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
