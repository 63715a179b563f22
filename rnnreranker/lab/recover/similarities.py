"""Scores of each similarity when one judged positive is visible and the others are hidden among the candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.process.phases import phase
from rnnreranker.labels import LabelParams
from rnnreranker.labels.methods.simple import JointLabeler, JointParams
from rnnreranker.labels.similarity import Asked, GraphSimilarity, VectorSimilarity
from rnnreranker.labels.targets import targets
from rnnreranker.rnn import RnnParams, jaccard_similarity
from rnnreranker.rnn.contexts import PlainNeighbours
from rnnreranker.rnn.mixture import smooth
from rnnreranker.rnn.reference import inner_products

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.runs import Run

OF_GRAPH = "graph-"  # before the names of those that a graph has, too
LAMBDAS = (0.3, 0.5, 0.7)  # of joint similarity, in place of its own
WEIGHTS = (0.0, 0.33, 0.67, 1.0)  # of the positive, in place of its own
SMOOTHING = ((0.25, 5), (0.5, 5), (0.5, 10))  # share and nearest candidates, of joint similarity smoothed
NEIGHBOURS = (8, 16)  # K, where the graph has more

Scores = dict[str, np.ndarray]  # name → (R, n) float64


@dataclass(frozen=True, eq=False)
class RankedCandidates:
    """A query and its n candidates in the order of the run; R of them are positives.

    context: (1, n + 1, d) float32, row 0 = query; positives: (R,) int64, candidate numbers from 0; rows: (n,) int64 in
    the graph, None without one; products: (n,) float64 with the query; scores: (n,) float64 of the run.
    """

    qid: str
    docids: Sequence[str]
    context: np.ndarray
    positives: np.ndarray
    rows: np.ndarray | None
    products: np.ndarray
    scores: np.ndarray


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
    beside: Callable[[str, Sequence[str], np.ndarray], Scores] | None = None
    threads: int | None = None

    def of(self, candidates: RankedCandidates) -> Scores:
        """Name → (R, n) float64, from each positive to the candidates; "query" is the same for all positives."""
        probes, lengths = np.append(0, candidates.positives + 1), np.array([len(candidates.docids)])
        mixed = VectorSimilarity(lengths, self.params, self.threads, candidates.context)
        near, alike = _ends(mixed.geometric(probes)), _ends(mixed.jaccard(probes[1:]))
        scores = {"query": np.broadcast_to(near[:1], near[1:].shape), "geometric": near[1:], "jaccard": alike}
        scores["mixed"] = self.params.lam * near[1:] + (1.0 - self.params.lam) * alike
        joint = VectorSimilarity(lengths, self.joint, self.threads, candidates.context)
        near, alike = _ends(joint.geometric(probes)), _ends(joint.jaccard(probes))
        a, lam = self.joint.positive_weight, self.joint.lam
        mixtures = {"joint-geometric": (a, 1.0), "joint-jaccard": (a, 0.0), "joint": (a, lam)}
        if self.ablations:
            mixtures |= {f"joint, lambda {other:g}": (a, other) for other in LAMBDAS if other != lam}
            mixtures |= {f"joint, a {other:g}": (other, lam) for other in WEIGHTS if other != a}
        scores |= {name: both(near, alike, *weights) for name, weights in mixtures.items()}
        if self.ablations:
            plain = jaccard_similarity(candidates.context, self.joint, probes=probes.tolist(), engine=PlainNeighbours())
            scores["joint, plain neighbours"] = both(near, _ends(plain[:, :, 1:]), a, lam)
            products = inner_products(candidates.context[0], shift_free=True)
            for share, count in SMOOTHING:
                scores[f"joint, smoothed {share:g} over {count}"] = smooth(scores["joint"], products, share, count)
        if self.graph is not None:
            scores |= self._of_graph(candidates, probes, self.graph)
        if self.beside is not None:
            scores |= self.beside(candidates.qid, candidates.docids, candidates.positives)
        return scores

    def _of_graph(self, candidates: RankedCandidates, probes: np.ndarray, graph: NeighbourGraph) -> Scores:
        """The same from the graph: single positives each in front, joint in the order of the run."""
        assert candidates.rows is not None
        count = len(candidates.rows)
        order = np.array([[row, *np.delete(np.arange(count), row)] for row in candidates.positives.tolist()])
        lengths, back = np.full(len(order), count), np.argsort(order, axis=1)
        single = GraphSimilarity(lengths, self.params, self.threads, graph, candidates.rows[order])
        first = np.ones(1, dtype=np.int64)
        scores = {
            name: np.take_along_axis(one[:, 0].astype(np.float64), back, axis=1)
            for name, one in (("geometric", single.geometric(first)), ("jaccard", single.jaccard(first)))
        }
        scores["mixed"] = self.params.lam * scores["geometric"] + (1.0 - self.params.lam) * scores["jaccard"]
        a, lam = self.joint.positive_weight, self.joint.lam
        asked = Asked(np.arange(count)[None], candidates.scores[None], candidates.products[None])
        for name, edges in self._graphs.items():
            joint = GraphSimilarity(lengths[:1], self.joint, self.threads, edges, candidates.rows[None], asked)
            scores[name] = both(_ends(joint.geometric(probes)), _ends(joint.jaccard(probes)), a, lam)
        return {OF_GRAPH + name: values for name, values in scores.items()}

    @cached_property
    def _graphs(self) -> dict[str, Any]:
        """Name of a joint similarity → the graph, or the graph with fewer neighbours."""
        assert self.graph is not None
        graphs: dict[str, Any] = {"joint": self.graph}
        for k in NEIGHBOURS if self.ablations else ():
            if k < self.graph.edges.shape[1]:
                near, similar = self.graph.edges[:, :k], self.graph.weights[:, :k]
                graphs[f"joint, K {k}"] = Nearest(np.ascontiguousarray(near), np.ascontiguousarray(similar))
        return graphs


class Nearest(NamedTuple):
    """The nearest neighbours of a graph: (D, k) uint32 and (D, k) float16."""

    edges: np.ndarray
    weights: np.ndarray


def both(near: np.ndarray, alike: np.ndarray, weight: float, lam: float) -> np.ndarray:
    """(R, n): joint similarity of s and J, (R + 1, n) each, row 0 = query."""
    mixed = lam * near + (1.0 - lam) * alike
    return weight * mixed[1:] + (1.0 - weight) * mixed[:1]


def _ends(values: np.ndarray) -> np.ndarray:
    """(P, n) float64, from (1, P, n)."""
    return values[0].astype(np.float64)


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
    used, size = 0, similarities.params.context
    for qid in run.qids:
        judged, docids = grades.get(qid, {}), run.ranked(qid)[:size]
        known = np.array([docid in judged or unjudged == "negative" for docid in docids], dtype=bool)
        positive = np.array([judged.get(docid, 0) >= relevant for docid in docids], dtype=bool)
        if positive.sum() <= visible or not (known & ~positive).any():
            continue
        used += 1
        if qid not in row_of:
            raise InputError(f"query {qid} has no vector; check that topics and run match")
        rows: list[Any] = [None, None]
        for number, (source, name) in enumerate(((vectors, "index"), (similarities.graph, "graph"))):
            if source is not None:
                rows[number] = source.rows(docids)
                if (rows[number] < 0).any():
                    lost = docids[int(np.argmin(rows[number]))]
                    raise InputError(f"query {qid}: {lost} is not in the {name}; use the run's own index")
        context = np.concatenate([queries.vectors[row_of[qid]][None], vectors.fetch(rows[0])]).astype(np.float32)[None]
        products = context[0, 1:].astype(np.float64) @ context[0, 0].astype(np.float64)
        in_run = np.array([score for _, score in run[qid][: len(docids)]])
        positives = np.flatnonzero(positive)
        scores = similarities.of(RankedCandidates(qid, docids, context, positives, rows[1], products, in_run))
        for first in range(len(positives)):
            chosen = np.sort((first + np.arange(visible)) % len(positives))
            seen, others = positives[chosen], known.copy()
            others[seen] = False
            means = {name: each[chosen].mean(axis=0) for name, each in scores.items()}
            shown = np.isin(np.arange(len(docids)), seen)
            mass = targets(means["joint"], shown, LabelParams()).astype(np.float64)
            yield Visible(
                qid,
                tuple(docids[row] for row in seen.tolist()),
                tuple(docid for docid, other in zip(docids, others.tolist(), strict=True) if other),
                positive[others],
                {name: mean[others] for name, mean in means.items()},
                mass[others],
                products[seen],
                products[others],
            )
    if not used:
        names = [argument("unjudged", "negative"), f"a lower {argument('relevant')}", argument("context")]
        raise InputError(
            f"no query has {visible + 1} positives and a judged negative among its first {size} candidates: nothing "
            f"can be hidden; give {', '.join(names)} or more judgements"
        )
