"""What a graph is made from: documents that can be compared, and the nearest of each, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from rnnreranker.errors import InputError

LARGEST = float(np.finfo(np.float16).max)
ENTRY = np.dtype([("edge", "<u4"), ("weight", "<f2")])


class GraphSource(Protocol):
    """Documents and how alike they are. A document in its own row of neighbours, at 0, stands for no neighbour.

    Attributes:
        of: the part of an index; similarity: "inner product" or "cosine"; docids: row -> docid.
        search: how the nearest are looked for.
    """

    of: str
    similarity: str
    search: str
    docids: Sequence[str]

    @property
    def fingerprint(self) -> str:
        """What tells these documents and how they are compared from others."""
        ...

    def nearest(self, rows: np.ndarray, k: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Edges (R, k) int64 and similarities (R, k) float64 of the k nearest others among the rows from `first` on.

        Largest similarity first, ties by the lower row; the result of a row depends on nothing but its document and
        those that it is compared with. rows: (R,) int64.
        """
        ...

    def similarities(self, rows: np.ndarray, edges: np.ndarray) -> np.ndarray:
        """(R, k) float64: of (R,) rows with (R, k) others, to the last digit as `nearest` gives them."""
        ...


def entries_of(source: GraphSource, rows: np.ndarray, k: int) -> np.ndarray:
    """(R, k) of `ENTRY`: the rows of the graph.

    Raises:
        InputError: a similarity that float16 cannot hold, documents that cannot be compared.
    """
    edges, scores = source.nearest(rows, k)
    entries = np.empty(edges.shape, dtype=ENTRY)
    entries["edge"] = edges
    with np.errstate(over="ignore"):
        entries["weight"] = scores
    beyond = ~np.isfinite(entries["weight"])
    if beyond.any():
        docid = source.docids[int(rows[np.flatnonzero(beyond.any(axis=1))[0]])]
        raise InputError(
            f"the inner products of {docid} with its neighbours are beyond {LARGEST:g}, the largest that a graph "
            "holds; make the vectors shorter, as with --l2-norm"
        )
    return entries
