"""One context taken apart: who is whose reciprocal neighbour, and what each shared neighbour adds to a score.

With v the expanded weights, J(0, i) = sum_j min(v_0j, v_ij) / sum_j max(v_0j, v_ij), so every element j adds
min(v_0j, v_ij) / sum_j max(v_0j, v_ij) to the Jaccard similarity of candidate i; these amounts sum to J.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.rnn import RnnParams, reference
from rnnreranker.runs.head import order_by_score


@dataclass(frozen=True)
class Shared:
    """An element that the query and a candidate have in common.

    element: 0 = the query itself. query_weight, weight: its expanded weights v_0j and v_ij. amount: what it adds to J.
    share: amount as a part of J, in [0, 1] for weights >= 0; 0 where J is 0.
    """

    element: int
    query_weight: float
    weight: float
    amount: float
    share: float


@dataclass(frozen=True)
class Candidate:
    """A candidate with both ranks (from 1) and its score s* = lambda * geometric + (1 - lambda) * jaccard.

    element: its number in the context, from 1. similarity: inner product with the query. by_similarity: the rank, from
    1, that it alone would give. reciprocal: the query and it stand in each other's list. extended: it belongs to the
    query's set only by the extension. shared: what it has in common with the query, the largest amount first.
    """

    element: int
    docid: str
    before: int
    after: int
    similarity: float
    by_similarity: int
    geometric: float
    jaccard: float
    score: float
    reciprocal: bool
    extended: bool
    shared: tuple[Shared, ...]

    @property
    def moved(self) -> int:
        """Places up; negative = down."""
        return self.before - self.after


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A query's context and every step of its scores.

    candidates: in their new order. steps: all intermediate results, element 0 = query, element i = the candidate that
    stood at place i. reciprocal: m sets, before the extension; steps.sets holds them after it.
    """

    params: RnnParams
    candidates: tuple[Candidate, ...]
    steps: reference.Steps
    reciprocal: list[set[int]]

    def docid(self, element: int) -> str:
        """The docid of an element of the context, which must not be the query."""
        return next(candidate.docid for candidate in self.candidates if candidate.element == element)

    def links(self) -> list[tuple[int, int, float]]:
        """Pairs of reciprocal neighbours (i < j) with the mean of v_ij and v_ji, the weights before the averaging."""
        weights = self.steps.weights
        return [
            (i, j, float(weights[i, j] + weights[j, i]) / 2)
            for i, members in enumerate(self.reciprocal)
            for j in sorted(members)
            if i < j
        ]


def neighbourhood(
    query: np.ndarray,
    candidates: np.ndarray,
    docids: Sequence[str],
    params: RnnParams,
    *,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
) -> Neighbourhood:
    """The context of one query taken apart; its scores are those of `rnn_similarity`, in float64.

    Args:
        query: (d,) float32.
        candidates: (N, d) float32, N >= 1, all of which take part; `params.context` is not applied here.
        docids: N distinct names of the candidates.
        params: the parameters of the reranker.
        before: N ranks from 1 before reranking (None = the order given).
        after: N ranks after it (None = by s* descending, ties by docid).

    Raises:
        InputError: no candidates, vectors of other dimensions, as many docids or ranks as candidates are not given,
            NaN or infinite vectors.
    """
    query, candidates = np.asarray(query, dtype=np.float32), np.asarray(candidates, dtype=np.float32)
    if query.ndim != 1 or candidates.ndim != 2 or not len(candidates) or candidates.shape[1] != len(query):
        raise InputError(
            f"query has shape {query.shape} and candidates {candidates.shape}: expected (d,) and (N, d), N >= 1"
        )
    for name, values in (("docids", docids), ("before", before), ("after", after)):
        if values is not None and len(values) != len(candidates):
            raise InputError(f"{name} has {len(values)} entries for {len(candidates)} candidates: expected as many")
    if not (np.isfinite(query).all() and np.isfinite(candidates).all()):
        raise InputError("NaN or infinite values in a vector; build the index, or encode the queries, again")
    return _taken_apart(np.vstack([query[None], candidates]), list(docids), params, before, after)


def _taken_apart(
    vectors: np.ndarray,
    docids: list[str],
    params: RnnParams,
    before: Sequence[int] | None,
    after: Sequence[int] | None,
) -> Neighbourhood:
    done = reference.steps(vectors, params)
    reciprocal = reference.reciprocal_sets(done.lists)
    geometric = reference.geometric(done, params)
    jaccard = reference.jaccard(done.expanded, 0)[1:]
    scores = reference.mix(geometric, jaccard, params.lam)
    similar = _ranks(done.raw[0, 1:], docids)
    first = before if before is not None else range(1, len(docids) + 1)
    last = after if after is not None else _ranks(scores, docids)
    found = [
        Candidate(
            element=i + 1,
            docid=docid,
            before=int(first[i]),
            after=int(last[i]),
            similarity=float(done.raw[0, i + 1]),
            by_similarity=int(similar[i]),
            geometric=float(geometric[i]),
            jaccard=float(jaccard[i]),
            score=float(scores[i]),
            reciprocal=i + 1 in reciprocal[0],
            extended=i + 1 in done.sets[0] - reciprocal[0],
            shared=_shared(done.expanded[0], done.expanded[i + 1]),
        )
        for i, docid in enumerate(docids)
    ]
    return Neighbourhood(params, tuple(sorted(found, key=lambda c: c.after)), done, reciprocal)


def _ranks(scores: np.ndarray, docids: list[str]) -> np.ndarray:
    """(N,) int64: the place of each candidate, from 1, by score descending, ties by docid."""
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[order_by_score(scores, np.array(docids, dtype=object))] = np.arange(1, len(scores) + 1)
    return ranks


def _shared(query: np.ndarray, row: np.ndarray) -> tuple[Shared, ...]:
    """What each element adds to the Jaccard similarity of two (m,) rows of expanded weights, the largest first."""
    below, above = np.minimum(query, row), reference.total(np.maximum(query, row))
    numerator = reference.total(below)
    if above == 0 or not abs(numerator) < abs(above) * 3e38:  # J is 0 there
        return ()
    shared = [
        Shared(
            int(j),
            float(query[j]),
            float(row[j]),
            float(below[j]) / above,
            float(below[j]) / numerator if numerator else 0.0,
        )
        for j in np.flatnonzero(below)
    ]
    return tuple(sorted(shared, key=lambda one: (-one.amount, one.element)))
