"""What each similarity says of a query's candidates, with respect to each of its positives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnnreranker.labels.methods.simple import JointLabeler, JointParams
from rnnreranker.labels.similarity import Asked, Edges, GraphSimilarity, VectorSimilarity
from rnnreranker.rnn import RnnParams, jaccard_similarity
from rnnreranker.rnn.contexts import PlainNeighbours
from rnnreranker.rnn.mixture import smooth
from rnnreranker.rnn.reference import inner_products

if TYPE_CHECKING:
    from rnnreranker.parts.neighbours import NeighbourGraph

OF_GRAPH = "graph-"  # before the names of those that a graph has, too
LAMBDAS = (0.3, 0.5, 0.7)  # of joint similarity, in place of its own
WEIGHTS = (0.0, 0.33, 0.67, 1.0)  # of the positive, in place of its own
SMOOTHING = ((0.25, 5), (0.5, 5), (0.5, 10))  # share and nearest candidates, of joint similarity smoothed
NEIGHBOURS = (8, 16)  # K, where the graph has more

Scores = dict[str, np.ndarray]  # name → (R, n) float64


@dataclass(frozen=True, eq=False)
class RankedCandidates:
    """A query and its n candidates, in the order of the run; R of them are positives.

    context: (1, n + 1, d) float32, row 0 = query; positives: (R,) int64, their numbers from 0; rows: (n,) int64 in
    the graph, or None without one; products: (n,) float64 with the query; scores: (n,) float64 of the run.
    """

    qid: str
    docids: Sequence[str]
    context: np.ndarray
    positives: np.ndarray
    rows: np.ndarray | None
    products: np.ndarray
    scores: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """(1,): n."""
        return np.array([self.context.shape[1] - 1])


@dataclass(frozen=True)
class Similarities:
    """The similarities that are compared.

    params: of Jaccard and mixed similarity; joint: of joint similarity, its ends and its ablations; graph: of the
    collection; ablations: whether joint similarity is computed with other settings, too; beside: scores of teachers;
    threads: None = one per core.
    """

    params: RnnParams
    joint: JointParams = JointLabeler.defaults
    graph: NeighbourGraph | None = None
    ablations: bool = False
    beside: Callable[[RankedCandidates], Scores] | None = None
    threads: int | None = None

    def of(self, candidates: RankedCandidates) -> Scores:
        """Name → (R, n) float64, of candidates to each positive; "query" is the same for all of them."""
        probes, lengths = np.append(0, candidates.positives + 1), candidates.lengths
        mixed = VectorSimilarity(lengths, self.params, self.threads, candidates.context)
        near, alike = _ends(mixed.geometric(probes)), _ends(mixed.jaccard(probes[1:]))
        scores = {"query": np.broadcast_to(near[:1], near[1:].shape), "geometric": near[1:], "jaccard": alike}
        scores["mixed"] = self.params.lam * near[1:] + (1.0 - self.params.lam) * alike
        joint = VectorSimilarity(lengths, self.joint, self.threads, candidates.context)
        near, alike = _ends(joint.geometric(probes)), _ends(joint.jaccard(probes))
        a, lam = self.joint.positive_weight, self.joint.lam
        scores["joint-geometric"] = both(near, alike, a, 1.0)
        scores["joint-jaccard"] = both(near, alike, a, 0.0)
        scores["joint"] = both(near, alike, a, lam)
        if self.ablations:
            scores |= {f"joint, lambda {other:g}": both(near, alike, a, other) for other in LAMBDAS if other != lam}
            scores |= {f"joint, a {other:g}": both(near, alike, other, lam) for other in WEIGHTS if other != a}
            plain = jaccard_similarity(
                candidates.context, self.joint, probes=probes.tolist(), engine=PlainNeighbours()
            )[0, :, 1:]
            scores["joint, plain neighbours"] = both(near, plain.astype(np.float64), a, lam)
            products = inner_products(candidates.context[0], shift_free=True)
            for share, count in SMOOTHING:
                scores[f"joint, smoothed {share:g} over {count}"] = smooth(scores["joint"], products, share, count)
        if self.graph is not None:
            scores |= self._of_graph(candidates, probes, self.graph)
        if self.beside is not None:
            scores |= self.beside(candidates)
        return scores

    def _of_graph(self, candidates: RankedCandidates, probes: np.ndarray, graph: NeighbourGraph) -> Scores:
        """The same from the graph: of single positives with each in front, joint in the order of the run."""
        assert candidates.rows is not None
        count = len(candidates.rows)
        order = np.array([[row, *np.delete(np.arange(count), row)] for row in candidates.positives.tolist()])
        lengths, back = np.full(len(order), count), np.argsort(order, axis=1)
        single = GraphSimilarity(lengths, self.params, self.threads, graph, candidates.rows[order])
        first = np.ones(1, dtype=np.int64)
        near, alike = (
            np.take_along_axis(one[:, 0].astype(np.float64), back, axis=1)
            for one in (single.geometric(first), single.jaccard(first))
        )
        scores = {"geometric": near, "jaccard": alike}
        scores["mixed"] = self.params.lam * near + (1.0 - self.params.lam) * alike
        a, lam = self.joint.positive_weight, self.joint.lam
        asked = Asked(np.arange(count)[None], candidates.scores[None], candidates.products[None])
        for name, edges in self._graphs.items():
            joint = GraphSimilarity(candidates.lengths, self.joint, self.threads, edges, candidates.rows[None], asked)
            scores[name] = both(_ends(joint.geometric(probes)), _ends(joint.jaccard(probes)), a, lam)
        return {OF_GRAPH + name: values for name, values in scores.items()}

    @cached_property
    def _graphs(self) -> dict[str, Edges]:
        """The graph, and what it is with fewer neighbours of a document, by the names of their joint similarity."""
        assert self.graph is not None
        graphs: dict[str, Edges] = {"joint": self.graph}
        for k in NEIGHBOURS if self.ablations else ():
            if k < self.graph.edges.shape[1]:
                near, similar = self.graph.edges[:, :k], self.graph.weights[:, :k]
                graphs[f"joint, K {k}"] = Nearest(np.ascontiguousarray(near), np.ascontiguousarray(similar))
        return graphs


class Nearest(NamedTuple):
    """The nearest of a graph: (D, k) uint32 and (D, k) float16."""

    edges: np.ndarray
    weights: np.ndarray


def both(near: np.ndarray, alike: np.ndarray, weight: float, lam: float) -> np.ndarray:
    """(R, n): joint similarity of its ends, (R + 1, n) each, the query first: s and J of them."""
    mixed = lam * near + (1.0 - lam) * alike
    return weight * mixed[1:] + (1.0 - weight) * mixed[:1]


def _ends(values: np.ndarray) -> np.ndarray:
    """(P, n) float64, of (1, P, n)."""
    return values[0].astype(np.float64)
