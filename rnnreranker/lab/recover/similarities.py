"""Scores of each similarity when one judged positive is visible and the others are hidden among the candidates."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import Inputs
from rnnreranker.base.process.phases import phase
from rnnreranker.base.written_form import Written
from rnnreranker.lab.recover.request import COLLECTIVE, Teacher
from rnnreranker.labels import LabelParams
from rnnreranker.labels.methods.simple import JointLabeler, JointParams
from rnnreranker.labels.similarity import Asked, GraphSimilarity, VectorSimilarity
from rnnreranker.labels.targets import targets
from rnnreranker.rnn import RnnParams, jaccard_similarity
from rnnreranker.rnn.contexts import PlainNeighbours

if TYPE_CHECKING:
    import pandas

    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.runs import Run

OF_GRAPH = "graph-"  # before the names of those that a graph has, too
LAMBDAS = (0.3, 0.5, 0.7)  # of joint similarity, in place of its own
WEIGHTS = (0.0, 0.33, 0.67, 1.0)  # of the positive, in place of its own

Scores = dict[str, np.ndarray]  # name → (R, n) float64
Beside = Callable[[str, Sequence[str], np.ndarray], Scores]  # of a query, n docids and R positives


@dataclass(frozen=True)
class Similarities:
    """The compared similarities.

    params: of Jaccard and mixed similarity; joint: of joint similarity; graph: of the collection; ablations: whether
    joint similarity has variants; beside: scores of teachers; threads: None = one per core.
    """

    params: RnnParams
    joint: JointParams = JointLabeler.defaults
    graph: NeighbourGraph | None = None
    ablations: bool = False
    beside: Beside | None = None
    threads: int | None = None

    @cached_property
    def joints(self) -> dict[str, JointParams]:
        """Name → settings of each joint similarity that differs in its weights alone."""
        lam, a = self.joint.lam, self.joint.positive_weight
        changes: dict[str, dict[str, Any]] = {"joint-geometric": {"lam": 1.0}, "joint-jaccard": {"lam": 0.0}}
        changes["joint"] = {}
        if self.ablations:
            changes |= {f"joint, lambda {other:g}": {"lam": other} for other in LAMBDAS if other != lam}
            changes |= {f"joint, a {other:g}": {"positive_weight": other} for other in WEIGHTS if other != a}
        return {name: dataclasses.replace(self.joint, **changed) for name, changed in changes.items()}

    def of(self, context: np.ndarray, positives: np.ndarray) -> Scores:
        """Name → (R, n) from each positive to the candidates; "query" is the same for all positives.

        context: (1, n + 1, d) float32, row 0 = query; positives: (R,) int64, candidate numbers from 0.
        """
        probes, lengths = positives + 1, np.array([context.shape[1] - 1])
        own, joint = (VectorSimilarity(lengths, one, self.threads, context) for one in (self.params, self.joint))
        scores = {
            "query": own.geometric(np.zeros(1, dtype=np.int64))[0].repeat(len(probes), axis=0),
            "geometric": own.geometric(probes)[0],
            "jaccard": own.jaccard(probes)[0],
            "mixed": own.mixed(probes)[0],
        }
        for name, params in self.joints.items():
            near = VectorSimilarity(lengths, params, self.threads, context)
            scores[name] = near.joint(probes, params.positive_weight)[0]
        if self.ablations:
            both, lam, a = np.append(0, probes), self.joint.lam, self.joint.positive_weight
            plain = jaccard_similarity(context, self.joint, probes=both.tolist(), engine=PlainNeighbours())[0, :, 1:]
            mixed = lam * joint.geometric(both)[0].astype(np.float64) + (1.0 - lam) * plain
            scores["joint, plain neighbours"] = a * mixed[1:] + (1.0 - a) * mixed[:1]
        return scores

    def of_graph(self, rows: np.ndarray, positives: np.ndarray, asked: Asked) -> Scores:
        """The same from the graph: single positives each in front, joint in the order of the run; rows: (n,) int64."""
        order = np.array([[row, *np.delete(np.arange(len(rows)), row)] for row in positives.tolist()])
        lengths, first = np.full(len(order), len(rows)), np.ones(1, dtype=np.int64)
        single = GraphSimilarity(lengths, self.params, self.threads, self.graph, rows[order])
        scores = {
            OF_GRAPH + name: np.take_along_axis(similarity(first)[:, 0], np.argsort(order, axis=1), axis=1)
            for name, similarity in (
                ("geometric", single.geometric),
                ("jaccard", single.jaccard),
                ("mixed", single.mixed),
            )
        }
        joint = GraphSimilarity(lengths[:1], self.joint, self.threads, self.graph, rows[None], asked)
        return scores | {OF_GRAPH + "joint": joint.joint(positives + 1, self.joint.positive_weight)[0]}


@dataclass(frozen=True, eq=False)
class Visible:
    """A query with visible positives and its n other judged candidates, in the order of the run.

    positives: docids of the visible ones; docids: of the others; hidden: (n,) bool; scores: scorer → (n,) float64,
    mean over the visible positives; mass: (n,) float64, probability in joint labels; positive_scores, raw: float64,
    inner products with the query of visible positives and of the others.
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
    """Each positive of each query in turn, if a hidden positive and a judged negative remain.

    With several visible positives, each is joined by those that follow it in the run, in a circle. The first
    `params.context` candidates form neighbourhoods; unjudged ones are ranked only if they count as negatives.

    Raises:
        InputError: a candidate or query without a vector, a candidate missing from the graph, no usable query.
    """
    grades = qrels.set_index("doc_id").groupby("query_id")["relevance"].agg(dict).to_dict()
    row_of = {qid: row for row, qid in enumerate(queries.qids)}
    used, size, graph = 0, similarities.params.context, similarities.graph
    for qid in run.qids:
        judged, names = grades.get(qid, {}), run.ranked(qid)[:size]
        docids = np.array(names, dtype=object)
        known = np.array([docid in judged or unjudged == "negative" for docid in names], dtype=bool)
        positive = np.array([judged.get(docid, 0) >= relevant for docid in names], dtype=bool)
        if positive.sum() <= visible or not (known & ~positive).any():
            continue
        used += 1
        if qid not in row_of:
            raise InputError(f"query {qid} has no vector; check that topics and run match")
        rows = {name: source.rows(names) for name, source in (("index", vectors), ("graph", graph)) if source}
        for name, own in rows.items():
            if (own < 0).any():
                raise InputError(f"query {qid}: {docids[own < 0][0]} is not in the {name}; use the run's own index")
        context = np.concatenate([queries.vectors[row_of[qid]][None], vectors.fetch(rows["index"])])
        context = context.astype(np.float32)[None]
        products = context[0, 1:].astype(np.float64) @ context[0, 0].astype(np.float64)
        positives = np.flatnonzero(positive)
        scores = similarities.of(context, positives)
        if graph is not None:
            in_run = np.array([[score for _, score in run[qid][: len(docids)]]])
            asked = Asked(np.arange(len(docids))[None], in_run, products[None])
            scores |= similarities.of_graph(rows["graph"], positives, asked)
        if similarities.beside is not None:
            scores |= similarities.beside(qid, names, positives)
        for first in range(len(positives)):
            chosen = np.sort((first + np.arange(visible)) % len(positives))
            shown = np.isin(np.arange(len(docids)), positives[chosen])
            others = known & ~shown
            means = {name: each[chosen].mean(axis=0, dtype=np.float64) for name, each in scores.items()}
            mass = targets(means["joint"], shown, LabelParams()).astype(np.float64)
            yield Visible(
                qid,
                tuple(docids[shown]),
                tuple(docids[others]),
                positive[others],
                {name: mean[others] for name, mean in means.items()},
                mass[others],
                products[shown],
                products[others],
            )
    if not used:
        names = [argument("unjudged", "negative"), f"a lower {argument('relevant')}", argument("context")]
        raise InputError(
            f"no query has {visible + 1} positives and a judged negative among its first {size} candidates: nothing "
            f"can be hidden; give {', '.join(names)} or more judgements"
        )


def scores_of(
    teachers: Sequence[Teacher], index: IndexOnDisk, run: Run, topics: Mapping[str, str], **how: Any
) -> Beside:
    """A function (qid, n docids, R positives) → name → (R, n) float64 scores of teachers.

    Args:
        run: the candidates, all of which are scored; topics: texts of its queries.
        how: documents, fields, encoded_queries and threads, as in `SearchRequest`.

    Raises:
        InputError: an index without a needed part, and errors of the rerankers.
    """
    from rnnreranker.methods.rerank.prf import PrfReranker
    from rnnreranker.parts.tokens.source import query_tokens
    from rnnreranker.search.searching import request_of, search

    deepest = int(np.diff(run.offsets).max(initial=1))
    reranked: dict[str, Any] = {}
    knowing: dict[str, PrfReranker] = {}
    for name, chosen in teachers:
        if COLLECTIVE.get(name):
            tokens = index.token_vectors
            inputs = Inputs(tokens=tokens, query_tokens=query_tokens(tokens, topics, how.get("threads")))
            knowing[name] = PrfReranker(inputs, chosen.params, threads=how.get("threads"))
            continue
        settings = chosen.params.to_dict()
        settings |= {"context": deepest} if "context" in settings else {}
        unread = () if "texts" in chosen.needs else ("documents", "fields")
        own = {key: value for key, value in how.items() if key not in unread}
        request = request_of(index, topics, run=run, rerank=Written(chosen.name, settings), hits=deepest, **own)
        reranked[name] = search(request).as_written().to_dict()

    def of(qid: str, docids: Sequence[str], positives: np.ndarray) -> Scores:
        scores = {name: np.array([[of[qid][docid] for docid in docids]]) for name, of in reranked.items()}
        scores = {name: own.repeat(len(positives), axis=0) for name, own in scores.items()}
        for name, teacher in knowing.items():
            asked = teacher.alone(qid, docids)
            scores[name] = np.array([teacher.scores_knowing(*asked, [number]) for number in positives.tolist()])
        return {name: scores[name] for name, _ in teachers}

    return of
