"""The vectors of a run, checked before any work: of its queries, and the rows of its candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError, argument

if TYPE_CHECKING:
    from rnnreranker.parts.vectors.ids import HasDocids
    from rnnreranker.parts.vectors.source import QueryVectors
    from rnnreranker.runs import Run


def check_dimension(queries: QueryVectors, dimension: int | None, source: str = "", index: str = "the index") -> None:
    """Raise InputError for query vectors of another dimension; None = any. source, index: names for the message."""
    if dimension not in (None, length := queries.vectors.shape[1]):
        raise InputError(
            f"{source}query vectors have {length} dimensions, {index} has {dimension}; "
            "encode the queries with the encoder that made the index"
        )


def check_missing(run: Run, usable: np.ndarray, lack: str, skip: str) -> None:
    """Raise InputError for a run with documents that cannot be used, or report them: how many, and the first three.

    Args:
        usable: (V,) bool, of the run's distinct docids; lack: the message about the others.
        skip: the method that leaves some, though not all, below the others; "" = none may be unusable.
    """
    if usable.all():
        return
    used = np.zeros(len(usable), dtype=bool)
    used[run.rows] = True
    lost, count = run.docids[used & ~usable], int(used.sum())
    said = f"{len(lost)} of {count} docids in the run {lack}"
    first = f"(first: {', '.join(map(str, lost[:3]))})"
    if len(lost) and not (skip and len(lost) < count):
        remedy = "" if skip else f", or {argument('missing', 'skip')} to leave them below the reranked ones"
        raise InputError(f"{said} {first}; use the index that the run was made from{remedy}")
    if len(lost):
        notice(f"{skip}: {said} and stay below the others {first}")


def vector_rows(source: HasDocids, run: Run, *, skip: str, beside: HasDocids | None) -> np.ndarray:
    """(V,) int64: the vector row of each distinct docid of the run, -1 if it has none.

    Args:
        source: vectors, or a graph; beside: read by the same rows, such as the vectors of a graph.
        skip: as in `check_missing`.

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
