"""What a graph of neighbours is made of, and who makes it."""

from __future__ import annotations

from dataclasses import dataclass

from rnnreranker.base.errors import InputError
from rnnreranker.base.process.backends import check_backend

GRAPHS = ("dense", "impact", "bm25")  # parts that neighbours are of
SEARCHES = ("exact", "hnsw", "ivf")


@dataclass(frozen=True)
class GraphParams:
    """The graph of an index. None leaves a choice to what is there: a graph that an index has stays.

    Args:
        k: neighbours of a document; None = 16.
        of: the part that documents are compared by; None = the first of `GRAPHS` that the index has or gets.
        search: how the nearest of dense vectors are looked for; None = exactly, beyond `approximate.EXACT` documents
            by "ivf". Other parts are searched exactly.
        backend: who makes it, as `write_graph`; the bytes do not depend on it. cluster: its address.

    Raises:
        InputError: k < 1, an unknown part, search or backend, an approximate search of another part.
        MissingDependencyError: a backend that is not installed.
    """

    k: int | None = None
    of: str | None = None
    search: str | None = None
    backend: str = "threads"
    cluster: str | None = None

    def __post_init__(self) -> None:
        if self.k is not None and self.k < 1:
            raise InputError(f"neighbours={self.k}: expected an integer >= 1")
        for name, value, known in (("neighbours_of", self.of, GRAPHS), ("graph_search", self.search, SEARCHES)):
            if value not in (None, *known):
                raise InputError(f"{name}={value}: expected one of {', '.join(known)}")
        if self.search not in (None, "exact") and self.of not in (None, "dense"):
            raise InputError(f"graph search {self.search} is of dense vectors; {self.of} is searched exactly")
        check_backend(self.backend)
