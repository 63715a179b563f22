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
WHOLE = 2**20  # documents up to which mutual proximity is measured: it looks up the rows of all neighbours


COVERED = ("pairs", "nearest", "kept", "found")  # what is measured of a context


def coverage(lists: np.ndarray, rows: np.ndarray, graph: NeighbourGraph) -> list[float | None]:
    """How much of a context of n candidates the graph contains; None where no pair qualifies.

    `pairs`: share of candidate pairs of which one names the other in the collection; `nearest`: the same of pairs
    listed among the candidates; `kept`: share of pairs reciprocal among the candidates that are reciprocal in the
    collection; `found`: the reverse.

    Args:
        lists: (n + 1, length) int64, the nearest elements of each, element 0 = query.
        rows: (n,) int64, of the candidates in the graph; -1 = missing.
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
    """How often documents are named by others, among the first k neighbours of each document.

    `in_degree`: its distribution; `skewness` of it, share of unnamed documents (`nobody`) and the most named one
    (`largest`). `cap`: a limit on in-degree, and the share of edges above it. `mutual`: the same where the k neighbours
    have the highest mutual proximity (N - r_ij)(N - r_ji) among all K; r_ij is the rank of j among the neighbours of i,
    from 1, or K + 1; None above 2^20 documents.

    Args:
        graph: N documents, K neighbours each.
        k: neighbours that count, at most K.

    Raises:
        InputError: an unusable row of the graph.
    """
    k = min(k, graph.k)
    degrees = np.zeros(len(graph), dtype=np.int64)
    mutual = np.zeros(len(graph), dtype=np.int64) if len(graph) <= WHOLE else None
    step = max(1, BLOCK // (graph.k * (1 if mutual is None else graph.k)))
    for first in range(0, len(graph), step):
        rows = np.arange(first, min(first + step, len(graph)))
        near = graph.neighbours(rows)
        degrees += np.bincount(_others(rows, near[:, :k]), minlength=len(graph))
        if mutual is not None:
            best = np.argsort(-_proximities(graph, rows, near), axis=1, kind="stable")[:, :k]
            chosen = np.take_along_axis(near, best, axis=1)
            mutual += np.bincount(_others(rows, chosen), minlength=len(graph))
    edges, cap = max(int(degrees.sum()), 1), CAP * k
    return {
        "k": k,
        "in_degree": spread(degrees),
        **_evenness(graph, degrees),
        "cap": {"at": cap, "edges": rounded(np.maximum(degrees - cap, 0).sum() / edges)},
        "mutual": None if mutual is None else _evenness(graph, mutual),
    }


def _evenness(graph: NeighbourGraph, degrees: np.ndarray) -> dict[str, Any]:
    largest = int(degrees.argmax())
    return {
        "skewness": rounded(skewness(degrees)),
        "nobody": rounded((degrees == 0).mean()),
        "largest": {"docid": str(graph.docids[largest]), "named": int(degrees[largest])},
    }


def _proximities(graph: NeighbourGraph, rows: np.ndarray, near: np.ndarray) -> np.ndarray:
    """(n, K) int64: mutual proximity of rows (n,) and their neighbours (n, K)."""
    back = graph.neighbours(near.ravel()).reshape(*near.shape, -1) == rows[:, None, None]
    count, k = len(graph), graph.k
    ranks = np.where(back.any(axis=2), back.argmax(axis=2), k)
    proximities: np.ndarray = (count - 1 - np.arange(k)) * (count - 1 - ranks)
    return np.where(near == rows[:, None], -1, proximities)


def _others(rows: np.ndarray, near: np.ndarray) -> np.ndarray:
    """The neighbours in (n, k) except the rows themselves."""
    others: np.ndarray = near[near != rows[:, None]]
    return others
