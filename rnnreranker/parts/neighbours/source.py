"""What a graph is made from: documents that can be compared, and the nearest of each, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.parts.neighbours.graph import map_graph

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

    def bounds(self, rows: np.ndarray, first: int) -> np.ndarray:
        """(R,) float64: no similarity to a document from row `first` on is above it; infinite: not known."""
        ...

    def similarities(self, rows: np.ndarray, edges: np.ndarray) -> np.ndarray:
        """(R, k) float64: of (R,) rows with (R, k) others, to the last digit as `nearest` gives them."""
        ...


@dataclass(frozen=True)
class Earlier:
    """An exact graph of the first documents, from before others joined.

    Args:
        folder: of the graph; count: of its documents; k: neighbours of each.
        kept: so many of the first documents are compared as they were then.
    """

    folder: Path
    count: int
    k: int
    kept: int

    def entries(self, rows: np.ndarray) -> np.ndarray:
        """(R, k) of `ENTRY`: the rows of the graph then."""
        entries = np.empty((len(rows), self.k), dtype=ENTRY)
        entries["edge"], entries["weight"] = (one[rows] for one in map_graph(self.folder, self.count, self.k))
        return entries


def entries_of(source: GraphSource, rows: np.ndarray, k: int, earlier: Earlier | None = None) -> np.ndarray:
    """(R, k) of `ENTRY`: the rows of the graph.

    Args:
        source: N documents; rows: (R,) int64, ascending.
        earlier: a graph with k neighbours of some of them: what it has is compared with the other documents alone,
            which gives the same.

    Raises:
        InputError: a similarity that float16 cannot hold, documents that cannot be compared.
    """
    if earlier is None or earlier.k != k or rows[0] >= earlier.kept:
        return as_entries(source, rows, *source.nearest(rows, k))
    entries = np.empty((len(rows), k), dtype=ENTRY)
    known = int(np.searchsorted(rows, earlier.kept))
    entries[:known] = earlier.entries(rows[:known])
    left = np.ones(len(rows), dtype=bool)
    left[:known] = ~_as_before(source, rows[:known], entries[:known], earlier.kept)
    changed = np.flatnonzero(left[:known])
    if len(changed):
        before = entries["edge"][changed].astype(np.int64)
        edges, scores, sure = _merged(source, rows[changed], before, earlier.kept)
        entries[changed[sure]] = as_entries(source, rows[changed[sure]], edges[sure], scores[sure])
        left[changed[sure]] = False
    if left.any():
        entries[left] = as_entries(source, rows[left], *source.nearest(rows[left], k))
    return entries


def as_entries(source: GraphSource, rows: np.ndarray, edges: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """(R, k) of `ENTRY`: what is known of some rows as the graph has it.

    Raises:
        InputError: a similarity that float16 cannot hold.
    """
    entries = np.empty(edges.shape, dtype=ENTRY)
    entries["edge"] = edges
    with np.errstate(over="ignore"):
        entries["weight"] = scores
    beyond = ~np.isfinite(entries["weight"])
    if beyond.any():
        docid = source.docids[int(rows[np.flatnonzero(beyond.any(axis=1))[0]])]
        raise InputError(
            f"the inner products of {docid} with its neighbours are beyond {LARGEST:g}, the largest that a graph "
            "holds; make the vectors shorter, as with --encoder NAME:normalize=true"
        )
    return entries


def _as_before(source: GraphSource, rows: np.ndarray, before: np.ndarray, kept: int) -> np.ndarray:
    """(R,) bool: whose (R, k) of `ENTRY` stay: k neighbours before `kept`, each nearer than all that come behind it.

    A weight is rounded: the next lower one is below the similarity of the last neighbour.
    """
    full = (before["edge"] < kept).all(axis=1) & (before["edge"][:, -1] != rows)
    last = np.nextafter(before["weight"][:, -1], np.float16(-np.inf)).astype(np.float64)
    full[full] = source.bounds(rows[full], kept) < last[full]
    return full


def _merged(
    source: GraphSource, rows: np.ndarray, before: np.ndarray, kept: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The k nearest of (R, k) documents and all from `kept` on: edges, similarities, (R, k) each, and which are sure.

    Documents of before from `kept` on are no longer what they were. Without them a line is sure as long as nothing in
    it stands behind the last that it had: what it did not have does not go before that one.
    """
    lost, last = before >= kept, before[:, -1]
    before = np.where(lost, rows[:, None], before)
    joined, joined_scores = source.nearest(rows, before.shape[1], kept)
    edges = np.concatenate([before, joined], axis=1)
    scores = np.concatenate([source.similarities(rows, before), joined_scores], axis=1)
    none = edges == rows[:, None]
    order = np.lexsort((edges, np.where(none, np.inf, -scores)), axis=1)[:, : before.shape[1]]
    scores[none] = 0.0
    edges, scores = np.take_along_axis(edges, order, axis=1), np.take_along_axis(scores, order, axis=1)
    behind = (edges[:, :-1] == last[:, None]).any(axis=1) & (last != rows)
    return edges, scores, ~lost.any(axis=1) | ((last < kept) & ~behind)
