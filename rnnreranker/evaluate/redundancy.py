"""How alike the first documents of a run are, by the vectors of an index: no judgement is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import VectorSource
    from rnnreranker.runs import Run

DEPTH = 10
NEAR = 0.9  # a cosine of so much and more makes two documents near-duplicates
NAMES = (f"cosine@{DEPTH}", f"pairs@{DEPTH}")  # of the two figures


@dataclass(frozen=True, eq=False)
class Redundancy:
    """How alike the first documents of each query are.

    qids: the queries that have two documents with vectors among their first; cosine: (Q,) float64, the mean of their
    pairs; pairs: (Q,) float64, how many of these are near-duplicates.
    """

    qids: tuple[str, ...]
    cosine: np.ndarray
    pairs: np.ndarray

    def means(self) -> dict[str, float]:
        """Both by name, means over the queries; 0 where there is none."""
        values = (self.cosine, self.pairs)
        return {name: float(one.mean()) if len(one) else 0.0 for name, one in zip(NAMES, values, strict=True)}

    def as_json(self) -> dict[str, Any]:
        """Means and values by query, plain values."""
        values = zip(NAMES, (self.cosine, self.pairs), strict=True)
        by_query = {name: dict(zip(self.qids, one.tolist(), strict=True)) for name, one in values}
        return {"near": NEAR, "mean": self.means(), "per_query": by_query}


def redundancy(run: Run, vectors: VectorSource) -> Redundancy:
    """The cosines of all pairs of the first ten documents of every query.

    Cosines of one encoder are no measure for those of another: compare runs by the same vectors. Documents without a
    vector, or with one of zeros, are left out.

    Args:
        run: of any number of queries.
        vectors: of its documents.

    Raises:
        InputError: the vectors cannot be read.
    """
    head = run.ranks <= DEPTH
    distinct, inverse = np.unique(run.rows[head], return_inverse=True)
    rows = vectors.rows(run.docids[distinct].tolist())
    unit = np.zeros((len(distinct), vectors.dimension))
    unit[rows >= 0] = vectors.fetch(rows[rows >= 0])
    lengths = np.linalg.norm(unit, axis=1, keepdims=True)
    unit /= np.where(lengths > 0, lengths, 1.0)
    able = lengths[:, 0] > 0
    qids, means, pairs = [], [], []
    queries = run.queries[head]
    starts = np.searchsorted(queries, np.arange(len(run) + 1))
    for number, qid in enumerate(run.qids):
        own = inverse[starts[number] : starts[number + 1]]
        own = own[able[own]]
        if len(own) < 2:
            continue
        cosines = (unit[own] @ unit[own].T)[np.triu_indices(len(own), 1)]
        qids.append(qid)
        means.append(cosines.mean())
        pairs.append((cosines.astype(np.float32) >= np.float32(NEAR)).sum())
    return Redundancy(tuple(qids), np.array(means, dtype=np.float64), np.array(pairs, dtype=np.float64))
