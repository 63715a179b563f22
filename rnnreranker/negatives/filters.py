"""Which candidates are no negatives to train on: by their neighbours in common with the positives, or by query score.

Every filter gives each pair of a positive and a candidate a suspicion, and discards what is above a threshold: so
filters can be compared at the same share of discarded pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.errors import InputError, nearest
from rnnreranker.labels import from_graph
from rnnreranker.labels.judged import Judged, JudgedContext, batches, check_queries, contexts_of, stacked
from rnnreranker.labels.likeness import VectorLikeness
from rnnreranker.negatives.params import NegativeParams
from rnnreranker.rnn import RnnParams
from rnnreranker.settings import choices, hints_of

if TYPE_CHECKING:
    from rnnreranker.neighbours import NeighbourGraph
    from rnnreranker.runs import Run
    from rnnreranker.vectors import QueryVectors, VectorSource

FILTERS = tuple(choices(hints_of(NegativeParams)["filter"]))


@dataclass(frozen=True, eq=False)
class Pool:
    """One query's R positives and the n candidates that nobody judged relevant, in the order of the run.

    positives: R docids; candidates: n docids; positive_scores: (R,) and scores: (n,) inner products with the query;
    likeness: (R, n) s* of positive and candidate.
    """

    qid: str
    positives: tuple[str, ...]
    candidates: tuple[str, ...]
    positive_scores: np.ndarray
    scores: np.ndarray
    likeness: np.ndarray


def pools(
    run: Run,
    judged: Judged,
    vectors: VectorSource,
    queries: QueryVectors,
    params: RnnParams | None = None,
    threads: int | None = None,
) -> list[Pool]:
    """The pools of the queries of a run that have positives with a vector, in the order of the run.

    Args:
        run: candidates; the first `params.context`, positives included, take part.
        judged: positives by query, see `labels.judged.positives_of`.
        vectors: of documents.
        queries: a vector for every query with positives.
        params: rNN parameters; None = the preset "vectors".
        threads: None = one per core; the pools do not depend on it.

    Raises:
        InputError: queries or candidates without a vector, or of another dimension.
    """
    params = params if params is not None else RnnParams.preset("vectors")
    check_queries(run, judged, vectors, queries)
    contexts, _ = contexts_of(run, judged, params.context, vectors)
    found: list[Pool | None] = [None] * len(contexts)
    for batch in batches(contexts, vectors, queries):
        likeness = VectorLikeness(batch.lengths, params, threads, batch.vectors)
        alike = likeness.mixed(batch.positives)
        for row, place in enumerate(batch.places):
            size = int(batch.lengths[row])
            scores = batch.vectors[row, 1 : size + 1] @ batch.vectors[row, 0]
            found[place] = _pool(contexts[place], scores.astype(np.float64), alike[row])
    return [pool for pool in found if pool is not None]


def pools_from_graph(
    run: Run, judged: Judged, graph: NeighbourGraph, params: RnnParams | None = None, threads: int | None = None
) -> list[Pool]:
    """The pools with s* from a graph of the collection, for the filter "rnn": scores are 0, nothing else is read.

    Args and Raises: as `pools`; graph: of the collection.
    """
    params = params if params is not None else RnnParams.preset("vectors")
    contexts, _ = contexts_of(run, judged, params.context, graph)
    found: list[Pool | None] = [None] * len(contexts)
    for batch in stacked(contexts, from_graph.BYTES * graph.k):
        likeness = from_graph.GraphLikeness(batch.lengths, params, threads, graph, batch.rows)
        alike = likeness.mixed(batch.positives)
        for row, place in enumerate(batch.places):
            found[place] = _pool(contexts[place], np.zeros(contexts[place].size), alike[row])
    return [pool for pool in found if pool is not None]


def _pool(context: JudgedContext, scores: np.ndarray, alike: np.ndarray) -> Pool:
    """The pool of a context of n candidates: scores (n,), alike (R, n or more), the first R are the positives."""
    docids, other, count = context.docids[: context.size], ~context.positive[: context.size], len(alike)
    return Pool(
        context.qid,
        tuple(docids[:count]),
        tuple(docid for docid, unknown in zip(docids, other.tolist(), strict=True) if unknown),
        scores[:count],
        scores[other],
        alike[:, : context.size][:, other].astype(np.float64),
    )


def unfiltered(run: Run, judged: Judged, size: int) -> list[Pool]:
    """The pools for the filter "none", which looks at no vector: scores and likeness are 0.

    Args:
        run, judged: as of `pools`; size: candidates of a query that take part, positives included.
    """
    contexts, _ = contexts_of(run, judged, size, None)
    found = []
    for context in contexts:
        docids = context.docids[: context.size]
        count = int(context.positive[: context.size].sum())
        rest = len(docids) - count
        blank = np.zeros(count), np.zeros(rest), np.zeros((count, rest))
        found.append(Pool(context.qid, tuple(docids[:count]), tuple(docids[count:]), *blank))
    return found


def suspicion(pool: Pool, how: str) -> np.ndarray:
    """(R, n) float64: how likely each candidate is a positive, too, seen from each positive; -inf for filter "none".

    rnn: the highest s* of the candidate with any positive. The others are the quantities that sentence-transformers'
    mine_hard_negatives compares: margin = s(q, c) - s(q, l), above -absolute_margin is discarded; relative-margin =
    (s(q, c) - s(q, l)) / |s(q, l)|, above -relative_margin is discarded; max-score = s(q, c).

    Raises:
        InputError: no such filter.
    """
    shape = pool.likeness.shape
    if how == "rnn":
        return np.broadcast_to(pool.likeness.max(axis=0), shape)
    if how == "max-score":
        return np.broadcast_to(pool.scores, shape)
    if how in ("margin", "relative-margin"):
        distance = pool.scores[None] - pool.positive_scores[:, None]
        size = np.abs(pool.positive_scores)[:, None]
        return distance if how == "margin" else distance / np.where(size > 0, size, 1.0)
    if how == "none":
        return np.full(shape, -np.inf)
    raise InputError(f"filter {how}: not known; {nearest(how, FILTERS)}")


def threshold_at(found: Sequence[Pool], how: str, rate: float) -> float:
    """The smallest threshold that discards at most this share of all pairs; ties stay together, on the kept side.

    Raises:
        InputError: rate outside [0, 1], no such filter, no pairs.
    """
    if not 0 <= rate <= 1:
        raise InputError(f"rate={rate}: expected a number in [0, 1]")
    values = np.concatenate([np.zeros(0), *(suspicion(pool, how).ravel() for pool in found)])
    if not len(values):
        raise InputError("no query has a candidate beside its positives: there are no negatives to choose from")
    allowed = int(rate * len(values) + 1e-9)
    if allowed >= len(values):
        return -np.inf
    return float(np.sort(values)[len(values) - 1 - allowed])


def discarded(pool: Pool, how: str, threshold: float) -> np.ndarray:
    """(R, n) bool: the candidates that are no negatives to use with each positive: suspicion above the threshold."""
    return suspicion(pool, how) > threshold
