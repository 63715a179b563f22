"""One judged positive stays visible, the others are hidden among the candidates: what each similarity says of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.process.phases import phase
from rnnreranker.lab.recover.similarities import RankedCandidates, Similarities
from rnnreranker.labels import LabelParams
from rnnreranker.labels.targets import targets

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.runs import Run

UNJUDGED = ("skip", "negative")


@dataclass(frozen=True, eq=False)
class Visible:
    """One query with one of its positives visible, or several, and its other judged candidates.

    positives: docids of the visible ones; docids: n others, in the order of the run; hidden: (n,) bool, the positives
    among them; scores: name of a scorer -> (n,) float64, see `Similarities.of`, the mean over the visible positives.
    mass: (n,) float64, the probability that joint labels of the visible positives give, with default label parameters;
    positive_scores: inner products of query and visible positives; raw: (n,) float64, of query and candidates.
    """

    qid: str
    positives: tuple[str, ...]
    docids: tuple[str, ...]
    hidden: np.ndarray
    scores: dict[str, np.ndarray]
    mass: np.ndarray
    positive_scores: np.ndarray
    raw: np.ndarray


@phase("ranking by the positives")
def visible_positives(
    run: Run,
    qrels: pandas.DataFrame,
    vectors: VectorSource,
    queries: QueryVectors,
    similarities: Similarities,
    *,
    relevant: int = 1,
    unjudged: str = "skip",
    visible: int = 1,
) -> Iterator[Visible]:
    """Every positive of every query in turn, where it leaves a hidden positive and a judged negative to tell apart.

    With several visible ones, each with those that follow it among the positives in the order of the run, in a circle.

    The first `params.context` candidates of a query are its context; all take part in the similarities, only judged
    ones are ranked, unless unjudged ones count as negatives. A positive outside of the context is neither visible nor
    hidden. `relevant`, `unjudged` and `visible` are as of `RecoverRequest`.

    Raises:
        InputError: candidates or queries without a vector, candidates that the graph lacks, no query with more
            positives than visible ones and a negative, with what would help.
    """
    if relevant < 1:
        raise InputError(f"{argument('relevant', relevant)}: expected a grade >= 1")
    if visible < 1:
        raise InputError(f"{argument('visible', visible)}: expected a number of positives >= 1")
    if unjudged not in UNJUDGED:
        raise InputError(f"unjudged={unjudged!r}: {nearest(unjudged, UNJUDGED)}")
    grades: dict[str, dict[str, int]] = {}
    columns = (qrels[name].tolist() for name in ("query_id", "doc_id", "relevance"))
    for qid, docid, grade in zip(*columns, strict=True):
        grades.setdefault(qid, {})[docid] = int(grade)
    row_of = {qid: row for row, qid in enumerate(queries.qids)}
    several = lower = used = 0  # queries with enough positives; with enough of lower grades; with a negative too
    wanted, size = visible + 1, similarities.params.context
    for qid in run.qids:
        judged = grades.get(qid, {})
        docids = run.ranked(qid)[:size]
        known = np.array([docid in judged or unjudged == "negative" for docid in docids], dtype=bool)
        positive = np.array([judged.get(docid, 0) >= relevant for docid in docids], dtype=bool)
        several += positive.sum() >= wanted
        lower += sum(judged.get(docid, 0) >= 1 for docid in docids) >= wanted
        if positive.sum() < wanted or not (known & ~positive).any():
            continue
        used += 1
        if qid not in row_of:
            raise InputError(f"query {qid} has no vector; check that topics and run match")
        query = queries.vectors[row_of[qid]]
        candidates = _candidates(qid, docids, positive, vectors, query, similarities, run)
        yield from _of_query(qid, docids, known, positive, candidates, similarities, visible)
    if not used:
        number = {2: "two", 3: "three"}.get(wanted, str(wanted))
        raise InputError(
            f"no query has {number} positives and a judged negative among its candidates: nothing can be hidden; "
            + _remedy(number, int(several), lower, relevant, unjudged, size)
        )


def _remedy(number: str, several: int, lower: int, relevant: int, unjudged: str, context: int) -> str:
    """What would give queries with enough positives and a negative; see `visible_positives`."""
    if several and unjudged == "skip":
        return (
            f"{several} have {number} positives and no judged negative: count candidates without a judgement as "
            f"negatives ({argument('unjudged', 'negative')}), or give judgements of negatives"
        )
    if several:
        return f"{several} have positives alone: give more candidates ({argument('context')}, {argument('run')})"
    if lower:
        return (
            f"{lower} have {number} of grades 1 to {relevant - 1}: give a lower {argument('relevant')} than {relevant}"
        )
    more = f"give more candidates ({argument('context')}, {argument('run')}), or more judgements"
    return f"none has {number} positives within the first {context}: {more}"


def _candidates(
    qid: str,
    docids: list[str],
    positive: np.ndarray,
    vectors: VectorSource,
    query: np.ndarray,
    similarities: Similarities,
    run: Run,
) -> RankedCandidates:
    rows = vectors.rows(docids)
    if (rows < 0).any():
        raise InputError(f"query {qid}: {docids[int(np.argmin(rows))]} is not in the index; use the run's own index")
    in_graph = None
    if similarities.graph is not None:
        in_graph = similarities.graph.rows(docids)
        if (in_graph < 0).any():
            lost = docids[int(np.argmin(in_graph))]
            raise InputError(f"query {qid}: {lost} is not in the graph; use the run's own index")
    context = np.concatenate([query[None], vectors.fetch(rows)]).astype(np.float32)[None]
    products = context[0, 1:].astype(np.float64) @ context[0, 0].astype(np.float64)
    scores = np.array([score for _, score in run[qid][: len(docids)]])
    return RankedCandidates(qid, docids, context, np.flatnonzero(positive), in_graph, products, scores)


def _of_query(
    qid: str,
    docids: list[str],
    known: np.ndarray,
    positive: np.ndarray,
    candidates: RankedCandidates,
    similarities: Similarities,
    visible: int,
) -> Iterator[Visible]:
    scores, positives = similarities.of(candidates), candidates.positives
    for first in range(len(positives)):
        chosen = np.sort((first + np.arange(visible)) % len(positives))
        seen = positives[chosen]
        others = known.copy()
        others[seen] = False
        means = {name: each[chosen].mean(axis=0) for name, each in scores.items()}
        shown, real = np.zeros((1, len(docids)), dtype=bool), np.ones((1, len(docids)), dtype=bool)
        shown[0, seen] = True
        mass = targets(means["joint"][None], shown, real, LabelParams())[0].astype(np.float64)
        yield Visible(
            qid,
            tuple(docids[row] for row in seen.tolist()),
            tuple(docid for docid, other in zip(docids, others.tolist(), strict=True) if other),
            positive[others],
            {name: mean[others] for name, mean in means.items()},
            mass[others],
            candidates.products[seen],
            candidates.products[others],
        )
