"""The vectors that a run needs, found before any work: those of its queries, and the rows of its candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from rnnreranker.errors import InputError

if TYPE_CHECKING:
    from rnnreranker.runs import Run
    from rnnreranker.vectors import QueryVectors, VectorSource

Missing = Literal["error", "skip"]


def checked_missing(missing: Missing) -> Missing:
    """What to do with candidates without a vector, as it was given.

    Raises:
        InputError: neither "error" nor "skip".
    """
    if missing not in ("error", "skip"):
        raise InputError(f"missing={missing!r}: expected 'error' or 'skip'")
    return missing


def query_rows(source: VectorSource, run: Run, query_vectors: QueryVectors) -> np.ndarray:
    """(Q, d) float32: the query vectors in the order of the run.

    Raises:
        InputError: vectors of another dimension than the index, a query without a vector.
    """
    dimension = query_vectors.vectors.shape[1]
    if dimension != source.dimension:
        raise InputError(
            f"query vectors have {dimension} dimensions, the index has {source.dimension}; "
            "encode the queries with the encoder that made the index"
        )
    places = {qid: row for row, qid in enumerate(query_vectors.qids)}
    lost = [qid for qid in run.qids if qid not in places]
    if lost:
        shown = ", ".join(lost[:3])
        raise InputError(f"{len(lost)} queries of the run have no vector (first: {shown}); check topics and run match")
    return query_vectors.vectors[[places[qid] for qid in run.qids]]


def vector_rows(source: VectorSource, run: Run, missing: Missing) -> np.ndarray:
    """(V,) int64: the vector row of each distinct docid of the run, -1 where there is none.

    Raises:
        InputError: docids without a vector, how many and the first three; not with missing="skip".
    """
    rows = source.rows(list(run.docids))
    lost = np.flatnonzero(rows < 0)
    if len(lost) and missing == "error":
        shown = ", ".join(map(str, run.docids[lost[:3]]))
        raise InputError(
            f"{len(lost)} of {len(run.docids)} docids in the run are not in the index (first: {shown}); "
            "use the index that the run was made from, or --missing skip to leave them below the reranked ones"
        )
    return rows
