"""Reciprocity among candidates compared with the collection's graph; hubs of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.lab.diagnose.measures import listed, rounded, skewness, spread

if TYPE_CHECKING:
    from rnnreranker.parts.neighbours import NeighbourGraph

CAP = 3  # times k: what a cap on in-degree is measured at
BLOCK = 2**22  # edges looked at together


COVERED = ("pairs", "nearest", "kept", "found")  # what is measured of a context


def coverage(lists: np.ndarray, rows: np.ndarray, graph: NeighbourGraph) -> list[float | None]:
    """How much of a context of n candidates the graph contains; None where no pair qualifies.

    `pairs`: share of candidate pairs of which one names the other in the collection; `nearest`: the same of pairs
    listed among the candidates; `kept`: share of pairs reciprocal among the candidates that are reciprocal in the
    collection; `found`: the reverse.

    lists: (n + 1, length) int64, nearest first, element 0 = query. rows: (n,) int64 in the graph; -1 = missing.
    """
    among = listed(lists, len(lists))[1:, 1:]
    np.fill_diagonal(among, False)
    near = graph.neighbours(np.maximum(rows, 0))
    named = (near[:, :, None] == rows).any(axis=1) & (rows >= 0)[:, None]  # (n, n): i names j
    np.fill_diagonal(named, False)
    known, both, reciprocal = named | named.T, named & named.T, among & among.T
    of = ((known, ~np.eye(len(rows), dtype=bool)), (known, among), (both, reciprocal), (reciprocal, both))
    return [float((having & among).sum() / among.sum()) if among.any() else None for having, among in of]


def coverage_of_all(several: Sequence[Sequence[float | None]]) -> dict[str, float | None]:
    """Measurement → mean over the contexts that have it."""
    means: dict[str, float | None] = {}
    for name, values in zip(COVERED, zip(*several, strict=True), strict=True):
        some = [value for value in values if value is not None]
        means[name] = rounded(np.mean(some)) if some else None
    return means


def hubs(graph: NeighbourGraph, k: int) -> dict[str, Any]:
    """How often documents are among the first k neighbours of others.

    `in_degree`: its distribution; `skewness`, share of documents that none names (`nobody`), the most named one
    (`largest`). `cap`: a limit on in-degree, and the share of edges above it.

    Raises:
        InputError: an unusable row of the graph.
    """
    k, degrees = min(k, graph.k), np.zeros(len(graph), dtype=np.int64)
    for first in range(0, len(graph), step := max(1, BLOCK // graph.k)):
        rows = np.arange(first, min(first + step, len(graph)))
        near = graph.neighbours(rows)[:, :k]
        degrees += np.bincount(near[near != rows[:, None]], minlength=len(graph))
    largest, cap = int(degrees.argmax()), CAP * k
    return {
        "k": k,
        "in_degree": spread(degrees),
        "skewness": rounded(skewness(degrees)),
        "nobody": rounded((degrees == 0).mean()),
        "largest": {"docid": str(graph.docids[largest]), "named": int(degrees[largest])},
        "cap": {"at": cap, "edges": rounded(np.maximum(degrees - cap, 0).sum() / max(int(degrees.sum()), 1))},
    }
