"""Which candidates are no negatives to train on: by similarity to the positives, to both ends, or by query score.

Every filter gives each pair of a positive and a candidate a suspicion, and discards what is above a threshold: so
filters can be compared at the same share of discarded pairs.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import Inputs
from rnnreranker.base.settings import choices, hints_of
from rnnreranker.labels.judged import Judged, JudgedBatch, JudgedContext, check_queries, contexts_of
from rnnreranker.labels.methods.base import Source, make_labeler
from rnnreranker.labels.negatives.params import NegativeParams
from rnnreranker.labels.methods.base import VectorLabeler
from rnnreranker.parts.vectors.of_run import FetchedTogether
from rnnreranker.rnn import RnnParams

if TYPE_CHECKING:
    from rnnreranker.runs import Run

FILTERS = tuple(choices(hints_of(NegativeParams)["filter"]))
SIMILAR = {"rnn": "evidence", "joint": "joint"}  # filter → the labels whose similarities it goes by


@dataclass(frozen=True, eq=False)
class Pool:
    """One query's R positives and the n candidates that nobody judged relevant, in the order of the run.

    positives: R docids; candidates: n docids; positive_scores: (R,) and scores: (n,) inner products with the query;
    similarity: filter → (R, n) the similarity of positive and candidate that it goes by: s* of "rnn", joint of "joint".
    """

    qid: str
    positives: tuple[str, ...]
    candidates: tuple[str, ...]
    positive_scores: np.ndarray
    scores: np.ndarray
    similarity: Mapping[str, np.ndarray]

    def without(self, docids: Collection[str]) -> Pool:
        """The pool without some of its candidates."""
        kept = np.array([docid not in docids for docid in self.candidates], dtype=bool)
        return dataclasses.replace(
            self,
            candidates=tuple(itertools.compress(self.candidates, kept.tolist())),
            scores=self.scores[kept],
            similarity={how: values[:, kept] for how, values in self.similarity.items()},
        )


def pools(
    run: Run,
    judged: Judged,
    inputs: Inputs,
    params: Mapping[str, RnnParams] | None = None,
    threads: int | None = None,
    source: Source = "vectors",
) -> list[Pool]:
    """The pools of the queries of a run that have positives with a vector, in the order of the run.

    Args:
        run: candidates; the first `context` of the parameters, positives included, take part.
        judged: positives by query, see `labels.judged.positives_of`.
        inputs: vectors of documents, and of every query with positives; or a graph of the collection, and what the
            filter needs beside it.
        params: filter → its parameters, of those of `SIMILAR` that are asked for; None = "rnn" with its defaults.
        threads: None = one per core; the pools do not depend on it.
        source: where similarities come from; from "neighbours" no scores are known, and are 0.

    Raises:
        InputError: queries or candidates without a vector, or of another dimension; filters with several contexts.
    """
    asked = params if params is not None else {"rnn": RnnParams.preset("vectors")}
    size, *others = sorted({one.context for one in asked.values()})
    if others:
        raise InputError(f"context: filters have {size} and {others[0]}; expected one for all")
    labelers = {
        how: make_labeler(SIMILAR[how], inputs, own, threads=threads, source=source) for how, own in asked.items()
    }
    scores: dict[int, np.ndarray] = {}
    alike: dict[str, dict[int, np.ndarray]] = {how: {} for how in labelers}
    contexts: list[JudgedContext] = []
    for how, labeler in labelers.items():
        assert isinstance(labeler, VectorLabeler)
        labeler.check(run, judged)
        contexts, _ = contexts_of(run, judged, size, labeler.source_of_rows)
        for batch in labeler.batches(contexts):
            similarities = labeler.similarities(batch)
            for row, index in enumerate(batch.indices):
                alike[how][index] = similarities[row]
            if source == "vectors" and how == next(iter(labelers)):
                scores.update(_products(batch))
    return [
        _pool(
            one,
            scores.get(index, np.zeros(one.size)),
            {how: similarities[index] for how, similarities in alike.items()},
        )
        for index, one in enumerate(contexts)
    ]


def scored(run: Run, judged: Judged, inputs: Inputs, size: int) -> list[Pool]:
    """The pools for the filters of inner products with the query, for which no similarity is computed.

    Args:
        run, judged: as of `pools`; inputs: vectors, and of every query with positives.
        size: candidates of a query that take part, positives included.

    Raises:
        InputError: queries or candidates without a vector, or of another dimension.
    """
    vectors, queries = inputs.vectors, inputs.query_vectors
    check_queries(run, judged, vectors, queries)
    contexts, _ = contexts_of(run, judged, size, vectors)
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *(one.rows for one in contexts)])
    bounds = np.cumsum([0, *(one.size for one in contexts)]).tolist()
    fetched = FetchedTogether(lambda part: vectors.fetch(rows[part]), bounds, vectors.dimension)
    row_of = {qid: row for row, qid in enumerate(queries.qids)}
    return [
        _pool(one, (fetched.of(number) @ queries.vectors[row_of[one.qid]]).astype(np.float64), {})
        for number, one in enumerate(contexts)
    ]


def _products(batch: JudgedBatch) -> Iterator[tuple[int, np.ndarray]]:
    """The index of every context of a batch, and its (n,) float64 inner products with the query."""
    for row, (index, length) in enumerate(zip(batch.indices, batch.lengths.tolist(), strict=True)):
        products = batch.vectors[row, 1 : length + 1] @ batch.vectors[row, 0]
        yield index, products.astype(np.float64)


def _pool(context: JudgedContext, scores: np.ndarray, alike: Mapping[str, np.ndarray]) -> Pool:
    """The pool of a context of n candidates: scores (n,), alike (R, n or more), the first R are the positives."""
    docids, other, count = context.docids[: context.size], ~context.positive[: context.size], len(context.grades)
    return Pool(
        context.qid,
        tuple(docids[:count]),
        tuple(itertools.compress(docids, other.tolist())),
        scores[:count],
        scores[other],
        {how: similarities[:, : context.size][:, other].astype(np.float64) for how, similarities in alike.items()},
    )


def unfiltered(run: Run, judged: Judged, size: int) -> list[Pool]:
    """The pools for the filter "none", which looks at no vector: scores are 0, no similarity is known.

    Args:
        run, judged: as of `pools`; size: candidates of a query that take part, positives included.
    """
    contexts, _ = contexts_of(run, judged, size, None)
    pools_of_run = []
    for context in contexts:
        docids = context.docids[: context.size]
        count = int(context.positive[: context.size].sum())
        rest = len(docids) - count
        blank = np.zeros(count), np.zeros(rest)
        pools_of_run.append(Pool(context.qid, tuple(docids[:count]), tuple(docids[count:]), *blank, {}))
    return pools_of_run


def suspicion(pool: Pool, how: str) -> np.ndarray:
    """(R, n) float64: how likely each candidate is a positive, too, seen from each positive; -inf for filter "none".

    rnn and joint: the highest s* or joint similarity of the candidate with any positive. The others are the quantities
    that sentence-transformers' mine_hard_negatives compares: margin = s(q, c) - s(q, l), above -absolute_margin is
    discarded; relative-margin = (s(q, c) - s(q, l)) / |s(q, l)|, above -relative_margin is discarded; max-score =
    s(q, c).

    Raises:
        InputError: no such filter.
    """
    shape = len(pool.positives), len(pool.candidates)
    if how in SIMILAR:
        return np.broadcast_to(pool.similarity[how].max(axis=0), shape)
    if how == "max-score":
        return np.broadcast_to(pool.scores, shape)
    if how in ("margin", "relative-margin"):
        distance = pool.scores[None] - pool.positive_scores[:, None]
        size = np.abs(pool.positive_scores)[:, None]
        return distance if how == "margin" else distance / np.where(size > 0, size, 1.0)
    if how == "none":
        return np.full(shape, -np.inf)
    raise InputError(f"filter {how}: not known; {nearest(how, FILTERS)}")


def threshold_at(several: Sequence[Pool], how: str, rate: float) -> float:
    """The smallest threshold that discards at most this share of all pairs; ties stay together, on the kept side.

    Raises:
        InputError: rate outside [0, 1], no such filter, no pairs.
    """
    if not 0 <= rate <= 1:
        raise InputError(f"rate={rate}: expected a number in [0, 1]")
    values = np.concatenate([np.zeros(0), *(suspicion(pool, how).ravel() for pool in several)])
    if not len(values):
        raise InputError("no query has a candidate beside its positives: there are no negatives to choose from")
    allowed = int(rate * len(values) + 1e-9)
    if allowed >= len(values):
        return -np.inf
    return float(np.sort(values)[len(values) - 1 - allowed])


def discarded(pool: Pool, how: str, threshold: float) -> np.ndarray:
    """(R, n) bool: the candidates that are no negatives to use with each positive: suspicion above the threshold."""
    return suspicion(pool, how) > threshold
