"""One judged positive stays visible, the others are hidden among the candidates: what each similarity says of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.errors import InputError, nearest
from rnnreranker.labels.from_graph import GraphLikeness
from rnnreranker.labels.likeness import VectorLikeness
from rnnreranker.process.phases import phase
from rnnreranker.rnn import RnnParams

if TYPE_CHECKING:
    import pandas

    from rnnreranker.neighbours import NeighbourGraph
    from rnnreranker.runs import Run
    from rnnreranker.vectors import QueryVectors, VectorSource

UNJUDGED = ("skip", "negative")
OF_GRAPH = "graph-"  # before the names of those that a graph has, too: geometric, jaccard and mixed


@dataclass(frozen=True, eq=False)
class Visible:
    """One query with one of its positives visible, and its other judged candidates.

    docids: n of them, in the order of the run; hidden: (n,) bool, the positives among them; scores: name of a scorer ->
    (n,) float64: inner product with the query; similarity to the visible positive, inner product mapped as the
    parameters say; Jaccard; and the mixture of both, the last three once more from a graph where one is given, with
    `OF_GRAPH` before their names. positive_score: inner product of query and visible positive;
    raw: (n,) float64, that of the query and the candidates, unmapped.
    """

    qid: str
    positive: str
    docids: tuple[str, ...]
    hidden: np.ndarray
    scores: dict[str, np.ndarray]
    positive_score: float
    raw: np.ndarray


@phase("ranking by the positives")
def visible_positives(
    run: Run,
    qrels: pandas.DataFrame,
    vectors: VectorSource,
    queries: QueryVectors,
    params: RnnParams,
    *,
    relevant: int = 1,
    unjudged: str = "skip",
    threads: int | None = None,
    graph: NeighbourGraph | None = None,
) -> Iterator[Visible]:
    """Every positive of every query in turn, where it leaves a hidden positive and a judged negative to tell apart.

    The first `params.context` candidates of a query are its context; all take part in the similarities, only judged
    ones are ranked, unless unjudged ones count as negatives. A positive outside of the context is neither visible nor
    hidden.

    Args:
        run: candidates.
        qrels: columns query_id, doc_id, relevance.
        vectors: of the candidates.
        queries: a vector for every query that is used.
        params: rNN parameters.
        relevant: grades from here on are positive.
        unjudged: "skip" leaves unjudged candidates out of the ranking; "negative" is for complete judgements.
        threads: None = one per core; nothing depends on it.
        graph: of the collection; its similarities are those of `labels --from neighbours` with the positive in front.

    Raises:
        InputError: candidates or queries without a vector, candidates that the graph lacks, `relevant` below 1, another
            word for `unjudged`, no query with two positives and a negative, with what would help.
    """
    if relevant < 1:
        raise InputError(f"relevant={relevant}: expected a grade >= 1")
    if unjudged not in UNJUDGED:
        raise InputError(f"unjudged={unjudged!r}: {nearest(unjudged, UNJUDGED)}")
    grades: dict[str, dict[str, int]] = {}
    columns = (qrels[name].tolist() for name in ("query_id", "doc_id", "relevance"))
    for qid, docid, grade in zip(*columns, strict=True):
        grades.setdefault(qid, {})[docid] = int(grade)
    places = {qid: row for row, qid in enumerate(queries.qids)}
    several = lower = used = 0  # queries with two positives; with two of lower grades; with a negative too
    for qid in run.qids:
        judged = grades.get(qid, {})
        docids = run.ranked(qid)[: params.context]
        known = np.array([docid in judged or unjudged == "negative" for docid in docids], dtype=bool)
        positive = np.array([judged.get(docid, 0) >= relevant for docid in docids], dtype=bool)
        several += positive.sum() >= 2
        lower += sum(judged.get(docid, 0) >= 1 for docid in docids) >= 2
        if positive.sum() < 2 or not (known & ~positive).any():
            continue
        used += 1
        if qid not in places:
            raise InputError(f"query {qid} has no vector; check that topics and run match")
        query = queries.vectors[places[qid]]
        yield from _of_query(qid, docids, known, positive, vectors, query, params, threads, graph)
    if not used:
        raise InputError(
            "no query has two positives and a judged negative among its candidates: nothing can be hidden; "
            + _remedy(int(several), lower, relevant, unjudged, params.context)
        )


def _remedy(several: int, lower: int, relevant: int, unjudged: str, context: int | None) -> str:
    """What would give queries with two positives and a negative; see `visible_positives`."""
    if several and unjudged == "skip":
        return (
            f"{several} have two positives and no judged negative: count candidates without a judgement as negatives "
            "(--unjudged negative), or give judgements of negatives"
        )
    if several:
        return f"{several} have positives alone: give more candidates (--context, --run)"
    if lower:
        return f"{lower} have two of grades 1 to {relevant - 1}: give a lower --relevant than {relevant}"
    first = "" if context is None else f" within the first {context}"
    return f"none has two positives{first}: give more candidates (--context, --run), or more judgements"


def _of_query(
    qid: str,
    docids: list[str],
    known: np.ndarray,
    positive: np.ndarray,
    vectors: VectorSource,
    query: np.ndarray,
    params: RnnParams,
    threads: int | None,
    graph: NeighbourGraph | None,
) -> Iterator[Visible]:
    rows = vectors.rows(docids)
    if (rows < 0).any():
        raise InputError(f"query {qid}: {docids[int(np.argmin(rows))]} is not in the index; use the run's own index")
    context = np.concatenate([query[None], vectors.fetch(rows)]).astype(np.float32)[None]
    lengths = np.array([len(docids)])
    probes = np.flatnonzero(positive) + 1
    likeness = VectorLikeness(lengths, params, threads, context)
    alike = likeness.jaccard(probes)[0].astype(np.float64)
    near = likeness.geometric(probes)[0].astype(np.float64)
    to_query = likeness.geometric(np.zeros(1, dtype=np.int64))[0, 0].astype(np.float64)
    raw = context[0, 1:].astype(np.float64) @ context[0, 0].astype(np.float64)
    scores = {"geometric": near, "jaccard": alike, "mixed": params.lam * near + (1.0 - params.lam) * alike}
    if graph is not None:
        scores |= _from_graph(qid, docids, probes - 1, graph, params, threads)
    for row, place in enumerate((probes - 1).tolist()):
        others = known.copy()
        others[place] = False
        yield Visible(
            qid,
            docids[place],
            tuple(docid for docid, other in zip(docids, others.tolist(), strict=True) if other),
            positive[others],
            {"query": to_query[others]} | {name: found[row, others] for name, found in scores.items()},
            float(raw[place]),
            raw[others],
        )


def _from_graph(
    qid: str, docids: list[str], places: np.ndarray, graph: NeighbourGraph, params: RnnParams, threads: int | None
) -> dict[str, np.ndarray]:
    """Name → (R, n) float64, from the graph: each of R places in n candidates and all of them, the former in front."""
    rows = graph.rows(docids)
    if (rows < 0).any():
        raise InputError(f"query {qid}: {docids[int(np.argmin(rows))]} is not in the graph; use the run's own index")
    order = np.array([[place, *np.delete(np.arange(len(rows)), place)] for place in places.tolist()])
    lengths, back = np.full(len(order), len(rows)), np.argsort(order, axis=1)
    likeness, first = GraphLikeness(lengths, params, threads, graph, rows[order]), np.ones(1, dtype=np.int64)
    near, alike = (
        np.take_along_axis(found[:, 0].astype(np.float64), back, axis=1)
        for found in (likeness.geometric(first), likeness.jaccard(first))
    )
    found = {"geometric": near, "jaccard": alike, "mixed": params.lam * near + (1.0 - params.lam) * alike}
    return {OF_GRAPH + name: values for name, values in found.items()}
