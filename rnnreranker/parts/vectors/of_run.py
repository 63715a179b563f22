"""The vectors of a run, checked before any work: of its queries, and the rows of its candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError, argument, instance_of

if TYPE_CHECKING:
    from rnnreranker.parts.vectors.ids import HasDocids
    from rnnreranker.parts.vectors.source import QueryVectors
    from rnnreranker.runs import Run


def query_rows(run: Run, query_vectors: QueryVectors, dimension: int | None = None) -> np.ndarray:
    """(Q, d) float32: the query vectors in the order of the run; dimension: of the index, None = any.

    Raises:
        InputError: vectors of another dimension, a query without a vector.
    """
    from rnnreranker.parts.vectors.source import QueryVectors
    from rnnreranker.runs import Run

    instance_of(run, Run, "run")
    check_dimension(instance_of(query_vectors, QueryVectors, "query_vectors"), dimension)
    return query_vectors.of(run.qids).vectors


def check_dimension(queries: QueryVectors, dimension: int | None, source: str = "", index: str = "the index") -> None:
    """Raise InputError for query vectors of another dimension; None = any. source, index: names for the message."""
    if dimension not in (None, length := queries.vectors.shape[1]):
        raise InputError(
            f"{source}query vectors have {length} dimensions, {index} has {dimension}; "
            "encode the queries with the encoder that made the index"
        )


def check_missing(run: Run, usable: np.ndarray, lack: str, skip: bool) -> None:
    """Raise InputError for a run with documents that cannot be used: how many, and the first three.

    Args:
        usable: (V,) bool, of the run's distinct docids; lack: the message about the others.
        skip: whether some, though not all, may be unusable.
    """
    lost, count = _lost(run, usable)
    if not len(lost) or (skip and len(lost) < count):
        return
    remedy = "" if skip else f", or {argument('missing', 'skip')} to leave them below the reranked ones"
    raise InputError(
        f"{len(lost)} of {count} docids in the run {lack} (first: {', '.join(map(str, lost[:3]))}); "
        f"use the index that the run was made from{remedy}"
    )


def notice_missing(run: Run, usable: np.ndarray, name: str) -> None:
    """Report how many docids of a run a method leaves out; usable: (V,) bool; name: of the method."""
    lost, count = _lost(run, usable)
    if len(lost):
        notice(
            f"{name}: {len(lost)} of {count} docids in the run are unknown and stay below the others (first: "
            f"{', '.join(map(str, lost[:3]))})"
        )


def _lost(run: Run, usable: np.ndarray) -> tuple[np.ndarray, int]:
    """The docids of a run's entries that are not usable, and the number of docids of its entries."""
    if usable.all():
        return run.docids[:0], 0
    used = np.zeros(len(usable), dtype=bool)
    used[run.rows] = True
    return run.docids[used & ~usable], int(used.sum())


def vector_rows(source: HasDocids, run: Run, *, skip: bool = False, beside: HasDocids | None = None) -> np.ndarray:
    """(V,) int64: the vector row of each distinct docid of the run, -1 if it has none.

    Args:
        source: vectors, or a graph; beside: read by the same rows, such as the vectors of a graph.
        skip: whether some docids, though not all, may be unknown.

    Raises:
        InputError: docids without a vector, how many and the first three; docids with another row in `beside`.
    """
    rows = source.rows(list(run.docids))
    check_missing(run, rows >= 0, "are not in the index", skip)
    if beside is not None:
        elsewhere = np.flatnonzero((beside.rows(list(run.docids)) != rows) & (rows >= 0))
        if len(elsewhere):
            shown = ", ".join(map(str, run.docids[elsewhere[:3]]))
            raise InputError(
                f"{len(elsewhere)} of {len(run.docids)} docids in the run have other rows in the graph than in the "
                f"vectors (first: {shown}); give the vectors that the graph was made from"
            )
    return rows
