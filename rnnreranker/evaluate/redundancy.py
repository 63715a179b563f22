"""The similarity of the first documents of a run by vectors, without judgements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.vectors import VectorSource
    from rnnreranker.runs import Run

DEPTH = 10
NEAR = 0.9  # a cosine of so much and more makes two documents near-duplicates
NAMES = (f"cosine@{DEPTH}", f"pairs@{DEPTH}")  # of the two figures


def means_of(table: pandas.DataFrame) -> dict[str, float]:
    """Means of both figures over the queries; 0 if there are none."""
    return dict(table.mean().fillna(0.0))


def redundancy(run: Run, vectors: VectorSource) -> pandas.DataFrame:
    """The cosines of all pairs of the first ten documents of every query: their mean, and how many are `NEAR`.

    A row, by its qid, for each query with two vectors or more; columns NAMES, float64. Documents without a vector, or
    with a zero vector, are ignored.

    Raises:
        InputError: no document is known, the vectors cannot be read.
    """
    import pandas

    figures: dict[str, tuple[float, float]] = {}
    head = run.head(DEPTH)
    distinct, numbers = np.unique(head.rows, return_inverse=True)
    docids = head.ids.of_rows(distinct).tolist()
    rows = vectors.rows(docids)
    if docids and rows.max() < 0:
        known = f"none of the first {DEPTH} docids of the queries is in the index (first: {docids[0]})"
        raise InputError(f"{known}; use the index that the run was made from")
    if lost := int((rows < 0).sum()):
        notice(f"{lost} of {len(rows)} documents among the first {DEPTH} have no vector in the index and are left out")
    unit = np.zeros((len(rows), vectors.dimension))
    unit[rows >= 0] = vectors.fetch(rows[rows >= 0])
    lengths = np.linalg.norm(unit, axis=1)
    unit /= np.where(lengths > 0, lengths, 1.0)[:, None]
    for qid, own in zip(head.qids, np.split(numbers, head.offsets[1:-1]), strict=True):
        own = own[lengths[own] > 0]
        if len(own) >= 2:
            cosines = (unit[own] @ unit[own].T)[np.triu_indices(len(own), 1)]
            figures[qid] = cosines.mean(), (cosines.astype(np.float32) >= np.float32(NEAR)).sum()
    return pandas.DataFrame.from_dict(figures, "index", np.float64, NAMES)
