"""What a graph of neighbours is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, setting
from rnnreranker.parts.neighbours.approximate import EXACT


@dataclass(frozen=True)
class GraphParams(Params):
    """The graph of an index. None leaves a choice to what is there: a graph that an index has stays.

    Raises:
        InputError: values out of range, an approximate search of another part than dense.
    """

    k: int | None = setting(None, "neighbours of a document; none: 16", at_least=1)
    by: Literal["dense", "impact", "bm25"] | None = setting(
        None,
        "the part that documents are compared by; none: the first of these that the index has",
    )
    search: Literal["exact", "hnsw", "ivf"] | None = setting(
        None,
        f"of dense vectors; none: exact up to {EXACT} documents and ivf beyond",
    )
    device_memory: float | None = setting(
        None, "GB of each --device for blocks of vectors and their products; none: half of what is free", above=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.search not in (None, "exact") and self.by not in (None, "dense"):
            raise InputError(f"graph search {self.search} is of dense vectors; {self.by} is searched exactly")
