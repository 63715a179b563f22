"""One context taken apart: the parts of each score, the reciprocal neighbours, and the share of each common neighbour.

A score is a sum of parts, each a weight times a value: of the rank in the run, the score there, the similarity to the
query, the Jaccard similarity J to each probe, and the mean score of the nearest candidates. With v the expanded
weights, J(p, i) = sum_j min(v_pj, v_ij) / sum_j max(v_pj, v_ij), so every element j adds
min(v_pj, v_ij) / sum_j max(v_pj, v_ij) to it; these amounts sum to J.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.parts.vectors.exact import inner_products
from rnnreranker.rnn import RnnParams, reference
from rnnreranker.runs.head import order_by_score, why_useless

if TYPE_CHECKING:
    from rnnreranker.methods.rerank.rnn import RnnReranker
    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.runs import Run


class ScorePart(NamedTuple):
    """A part of every score of a context: `weight` times the candidate's value.

    kind: "rank" and "run" of the first stage, "geo" = similarity to the query, "jac" = J with the query, "near" = J
    with the candidate `probe`, "lent" = the mean score of the nearest candidates before smoothing.
    """

    kind: Literal["rank", "run", "geo", "jac", "near", "lent"]
    weight: float
    probe: int = 0


class Shared(NamedTuple):
    """A common element of a probe and a candidate, 0 = the query: v_pj, v_ij, and its amount of J.

    share: amount / J, in [0, 1] for weights >= 0; 0 if J is 0.
    """

    element: int
    probe_weight: float
    weight: float
    amount: float
    share: float


class Link(NamedTuple):
    """Two elements and the weight between them, before the averaging.

    kind: "query" or "near" from the query or another probe to a member of its set; "between" = other reciprocal
    neighbours.
    extended: the second is in the set by the extension alone.
    """

    first: int
    second: int
    weight: float
    kind: Literal["query", "near", "between"]
    extended: bool = False


class Candidate(NamedTuple):
    """A candidate with its ranks (from 1) before and after, and its score.

    element: its number in the context, from 1. run_score: of the first stage, similarity: inner product with the query;
    None if unknown. by_similarity: rank by it. values, amounts: of the parts, amount = weight * value, whose sum is the
    score. mixed: the score before smoothing. nearest: the elements of the smoothing, nearest first.
    """

    element: int
    docid: str
    before: int
    after: int
    run_score: float | None
    similarity: float | None
    by_similarity: int | None
    values: Sequence[float]
    amounts: Sequence[float]
    score: float
    mixed: float
    nearest: Sequence[int]

    @property
    def moved(self) -> int:
        return self.before - self.after


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A query's context and every step of its scores.

    candidates: in their new order. parts: of every score, those with a weight. probes: elements, the query first.
    steps: all intermediate results; element 0 = query, element i = candidate i. reciprocal: m sets before the
    extension; steps.sets are those after it. of_graph: where similarities to the query come from if those of documents
    come from a graph, "" with vectors.
    """

    params: RnnParams
    candidates: tuple[Candidate, ...]
    parts: tuple[ScorePart, ...]
    probes: tuple[int, ...]
    steps: reference.Steps
    reciprocal: list[set[int]]
    of_graph: Literal["", "vectors", "run", "unknown"] = ""

    @cached_property
    def of_element(self) -> dict[int, Candidate]:
        return {candidate.element: candidate for candidate in self.candidates}

    def links(self) -> list[Link]:
        """The links of a context, each pair once: those of the probes last, the query's at the end."""
        weights, own = self.steps.weights, dict[frozenset[int], Link]()
        for probe in self.probes:
            for one in sorted(self.steps.sets[probe] - {0, probe}):
                of_set = one not in self.reciprocal[probe]
                link = Link(probe, one, float(weights[probe, one]), "near" if probe else "query", of_set)
                own.setdefault(frozenset((probe, one)), link)
        between = [
            Link(i, j, float(weights[i, j] + weights[j, i]) / 2, "between")
            for i, members in enumerate(self.reciprocal)
            for j in sorted(members)
            if i < j and frozenset((i, j)) not in own
        ]
        return [*between, *reversed(own.values())]

    def shared(self, element: int, probe: int = 0) -> list[Shared]:
        """The amount of each element in J of a probe and another element, the largest first."""
        one, row = self.steps.expanded[probe], self.steps.expanded[element]
        below, above = np.minimum(one, row), reference.total(np.maximum(one, row))
        numerator = reference.total(below)
        if above == 0 or not abs(numerator) < abs(above) * 3e38:  # J is 0 there
            return []
        shared = [
            Shared(j, float(one[j]), float(row[j]), amount / above, amount / numerator if numerator else 0.0)
            for j, amount in enumerate(below.tolist())
            if amount
        ]
        return sorted(shared, key=lambda part: (-part.amount, part.element))


def neighbourhood(
    query: np.ndarray, candidates: np.ndarray, docids: list[str], params: RnnParams, **about: Any
) -> Neighbourhood:
    """The context of one query taken apart; its scores are those of `rnn_similarity`, in float64.

    Args:
        query: (d,) float32.
        candidates: (N, d) float32, N >= 1, in the order of the first stage; ignores `params.context`.
        docids: N distinct names of the candidates.
        about: base = N scores of the first stage (None: the inner products); before, after = N ranks from 1 (None: the
            given order; by s*, ties by docid).
    """
    return _of_steps(reference.steps(np.vstack([query[None], candidates]), params), docids, params, **about)


def graph_neighbourhood(
    graph: NeighbourGraph,
    docids: list[str],
    params: RnnParams,
    query: np.ndarray | None = None,
    of_run: bool = False,
    **about: Any,
) -> Neighbourhood:
    """As `neighbourhood`, from a graph of the collection; its scores are those of `graph_similarity`, in float64.

    docids: in the graph; query: N inner products of query and candidates, None = unknown, then `base` is needed;
    of_run: whether these are the scores of the run.

    Raises:
        InputError: parameters that need more.
    """
    rows = graph.rows(docids)
    params = params.of_graph(query is not None)
    edges, weights = graph.fetch(rows)
    element_of = {int(row): element for element, row in enumerate(rows)}
    inside = np.array([[element_of.get(int(edge), len(rows)) for edge in line] for line in edges])
    similarities = reference.known_similarities(inside, weights, range(len(rows)), query)
    of_graph = "unknown" if query is None else "run" if of_run else "vectors"
    return _of_steps(reference.graph_steps(similarities, params), docids, params, of_graph=of_graph, **about)


def taken_apart(base: Run, reranked: Run, reranker: RnnReranker, qid: str) -> tuple[Neighbourhood, str]:
    """The neighbourhood of one query, and why the scores of the run say nothing beyond its order, or "".

    base, reranked: the run before and after. Explains the first `params.context` candidates of `base` that the source
    has.

    Raises:
        InputError: no such candidates.
    """
    params, entries = reranker.params, dict(base[qid]) if qid in base else {}
    ranks = {docid: rank for rank, docid in enumerate(entries, 1)}
    from_graph, of_run = reranker.source == "neighbours", reranker.queries == "run"
    rows = (reranker.graph if from_graph else reranker.vectors).rows(list(ranks))
    context = [docid for docid, row in zip(ranks, rows, strict=True) if row >= 0][: params.context]
    if not context:
        raise InputError(f"--explain {qid}: no candidates for this query, so there is nothing to explain")
    counts = params.uses_run and params.run_weight and not of_run  # as in `RnnReranker.run_scores`
    useless = why_useless(base.scores, base.offsets) if counts else None
    now = {docid: rank for rank, docid in enumerate(reranked.ranked(qid), 1)}
    about: dict[str, Any] = {
        "base": [0.0 if useless else entries[docid] for docid in context],
        "before": [ranks[docid] for docid in context],
        "after": [now[docid] for docid in context],
    }
    products: Any = [entries[docid] for docid in context] if of_run else None
    if "query vectors" in reranker.needs:
        query = np.asarray(reranker.inputs.query_vectors.of([qid]).vectors[0], dtype=np.float32)
        vectors = reranker.vectors.fetch(reranker.vectors.rows(context))
        if not from_graph:
            return neighbourhood(query, vectors, context, params, **about), useless or ""
        products = inner_products(query, vectors)
    made = graph_neighbourhood(reranker.graph, context, params, query=products, of_run=of_run, **about)
    return made, useless or ""


def _of_steps(
    done: reference.Steps,
    docids: list[str],
    params: RnnParams,
    base: Sequence[float] | np.ndarray | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    of_graph: Any = "",
) -> Neighbourhood:
    made = reference.parts(done, params, base)
    parts, values = _parts(made, params)
    unknown, products = [None] * len(docids), done.raw[0, 1:]
    known = of_graph != "unknown"
    columns = (  # of the candidates, as the fields of Candidate
        range(1, len(docids) + 1),
        docids,
        before or range(1, len(docids) + 1),
        after or _ranks(made.scores, docids),
        unknown if base is None else np.asarray(base, float).tolist(),
        products.tolist() if known else unknown,
        _ranks(products, docids) if known else unknown,
        values.T.tolist(),
        (values.T * [part.weight for part in parts]).tolist(),
        made.scores.tolist(),
        made.mixed.tolist(),
        made.nearest,
    )
    candidates = sorted((Candidate(*row) for row in zip(*columns, strict=True)), key=lambda one: one.after)
    reciprocal = reference.reciprocal_sets(done.lists)
    return Neighbourhood(params, tuple(candidates), parts, tuple(made.probes), done, reciprocal, of_graph)


def _parts(made: reference.Parts, params: RnnParams) -> tuple[tuple[ScorePart, ...], np.ndarray]:
    """The P parts with a weight, and their values, (P, N) float64."""
    kinds: tuple[Any, ...] = ("rank", "run", "geo") if len(made.terms) > 1 else ("geo",)
    rest = 1 - params.smoothing if params.smoothed_over else 1.0
    each = rest * (1 - params.lam) / len(made.probes)
    parts = [
        *(ScorePart(kind, rest * params.lam * share) for kind, share in zip(kinds, made.weights.tolist(), strict=True)),
        *(ScorePart("near" if probe else "jac", each, probe) for probe in made.probes),
        ScorePart("lent", params.smoothing if params.smoothed_over else 0.0),
    ]
    weighed = [part.weight != 0 for part in parts]
    return tuple(compress(parts, weighed)), np.array([*made.terms, *made.jaccard, made.lent])[weighed]


def _ranks(scores: np.ndarray, docids: list[str]) -> list[int]:
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[order_by_score(scores, np.array(docids, dtype=object))] = np.arange(1, len(scores) + 1)
    return ranks.tolist()
