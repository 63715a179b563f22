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
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.parts.vectors.exact import inner_products
from rnnreranker.rnn import RnnParams, reference
from rnnreranker.runs.head import order_by_score, why_useless

if TYPE_CHECKING:
    from rnnreranker.methods.rerank import RnnReranker
    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.runs import Run

Values = Sequence[float] | np.ndarray | None  # N, one of every candidate


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


@dataclass(frozen=True)
class Candidate:
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
    values: tuple[float, ...]
    amounts: tuple[float, ...]
    score: float
    mixed: float
    nearest: tuple[int, ...]

    @property
    def moved(self) -> int:
        return self.before - self.after


class Known(NamedTuple):
    """The pairs of N candidates that a graph with k neighbours of a document knows.

    pairs: the known ones, of all `of`; the others count as `lowest`. query: the source of similarities to the query:
    "vectors", the scores of the "run", or "dealt": the `dealt` similarities of the first candidate.
    """

    k: int
    pairs: int
    of: int
    lowest: float
    query: Literal["vectors", "run", "dealt"]
    dealt: int = 0


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A query's context and every step of its scores.

    candidates: in their new order. parts: of every score, those with a weight. probes: elements, the query first.
    steps: all intermediate results; element 0 = query, element i = candidate i. reciprocal: m sets before the
    extension; steps.sets are those after it. known: of a graph; None with vectors.
    """

    params: RnnParams
    candidates: tuple[Candidate, ...]
    parts: tuple[ScorePart, ...]
    probes: tuple[int, ...]
    steps: reference.Steps
    reciprocal: list[set[int]]
    known: Known | None = None

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
    query: np.ndarray, candidates: np.ndarray, docids: Sequence[str], params: RnnParams, **about: Any
) -> Neighbourhood:
    """The context of one query taken apart; its scores are those of `rnn_similarity`, in float64.

    Args:
        query: (d,) float32.
        candidates: (N, d) float32, N >= 1, in the order of the first stage; ignores `params.context`.
        docids: N distinct names of the candidates.
        about: base = N scores of the first stage (None: the inner products); before, after = N ranks from 1 (None: the
            given order; by s*, ties by docid).

    Raises:
        InputError: other shapes, not one docid, score or rank for each candidate, NaN or infinite values.
    """
    query, candidates = np.asarray(query, dtype=np.float32), np.asarray(candidates, dtype=np.float32)
    if query.ndim != 1 or candidates.ndim != 2 or not len(candidates) or candidates.shape[1] != len(query):
        raise InputError(
            f"query has shape {query.shape} and candidates {candidates.shape}: expected (d,) and (N, d), N >= 1"
        )
    _check(len(candidates), docids=docids, **about)
    if not (np.isfinite(query).all() and np.isfinite(candidates).all()):
        raise InputError("NaN or infinite values in a vector; build the index, or encode the queries, again")
    return _of_steps(reference.steps(np.vstack([query[None], candidates]), params), list(docids), params, **about)


def graph_neighbourhood(
    graph: NeighbourGraph,
    docids: Sequence[str],
    params: RnnParams,
    *,
    query: Values = None,
    of_run: bool = False,
    **about: Any,
) -> Neighbourhood:
    """As `neighbourhood`, from a graph of the collection; its scores are those of `graph_similarity`, in float64.

    docids: in the graph; query: N inner products of query and candidates, None = unknown, then `base` is needed;
    of_run: whether these are the scores of the run.

    Raises:
        InputError: docids that the graph lacks, as `neighbourhood`, neither query nor base, parameters that need more.
    """
    rows = graph.rows(list(docids))
    if not len(rows) or (rows < 0).any():
        lost = next((docid for docid, row in zip(docids, rows, strict=True) if row < 0), "none")
        raise InputError(f"docids: {lost}; expected one or more, all of them in {graph.path}")
    if query is None and about.get("base") is None:
        raise InputError("neither query nor base: expected inner products with the query, or scores of a run")
    _check(len(rows), query=query, **about)
    params = params.of_graph(query is not None)
    edges, weights = graph.fetch(rows)
    element_of = {int(row): element for element, row in enumerate(rows)}
    inside = np.array([[element_of.get(int(edge), len(rows)) for edge in line] for line in edges])
    similarities = reference.known_similarities(inside, weights, range(len(rows)), query)
    pairs = np.isfinite(similarities)
    done = reference.graph_steps(similarities, params)
    known = Known(
        k=graph.k,
        pairs=int(pairs[1:, 1:].sum()) // 2,
        of=len(rows) * (len(rows) - 1) // 2,
        lowest=float(done.raw.min()),
        query="dealt" if query is None else "run" if of_run else "vectors",
        dealt=int(pairs[0].sum()) if query is None else 0,
    )
    return _of_steps(done, list(docids), params, known=known, **about)


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


def _check(count: int, **given: Any) -> None:
    for name, values in given.items():
        if values is not None and len(values) != count:
            raise InputError(f"{name} has {len(values)} entries for {count} candidates: expected as many")
        if values is not None and name in ("query", "base") and not np.isfinite(np.asarray(values, float)).all():
            raise InputError(f"NaN or infinite scores in {name}; expected finite ones")


def _of_steps(
    done: reference.Steps,
    docids: list[str],
    params: RnnParams,
    base: Values = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
    known: Known | None = None,
) -> Neighbourhood:
    made = reference.parts(done, params, base)
    parts, values = _parts(made, params)
    products = None if known is not None and known.query == "dealt" else done.raw[0, 1:].tolist()
    similar = None if products is None else _ranks(done.raw[0, 1:], docids)
    before = before if before is not None else range(1, len(docids) + 1)
    after = after if after is not None else _ranks(made.scores, docids)
    candidates = [
        Candidate(
            element=i + 1,
            docid=docid,
            before=before[i],
            after=after[i],
            run_score=None if base is None else float(base[i]),
            similarity=None if products is None else products[i],
            by_similarity=None if similar is None else similar[i],
            values=tuple(float(row[i]) for row in values),
            amounts=tuple(part.weight * float(row[i]) for part, row in zip(parts, values, strict=True)),
            score=float(made.scores[i]),
            mixed=float(made.mixed[i]),
            nearest=tuple(made.nearest[i]),
        )
        for i, docid in enumerate(docids)
    ]
    ordered = tuple(sorted(candidates, key=lambda one: one.after))
    reciprocal = reference.reciprocal_sets(done.lists)
    return Neighbourhood(params, ordered, parts, tuple(made.probes), done, reciprocal, known)


def _parts(made: reference.Parts, params: RnnParams) -> tuple[tuple[ScorePart, ...], list[np.ndarray]]:
    """The parts with a weight, and the values of the candidates for each, (N,) float64."""
    kinds: tuple[Any, ...] = ("rank", "run", "geo") if len(made.terms) > 1 else ("geo",)
    rest = 1 - params.smoothing if params.smoothed_over else 1.0
    each = rest * (1 - params.lam) / len(made.probes)
    parts = [
        *(ScorePart(kind, rest * params.lam * share) for kind, share in zip(kinds, made.weights.tolist(), strict=True)),
        *(ScorePart("near" if probe else "jac", each, probe) for probe in made.probes),
        ScorePart("lent", params.smoothing if params.smoothed_over else 0.0),
    ]
    pairs = zip(parts, [*made.terms, *made.jaccard, made.lent], strict=True)
    weighed = [(part, values) for part, values in pairs if part.weight]
    return tuple(part for part, _ in weighed), [values for _, values in weighed]


def _ranks(scores: np.ndarray, docids: list[str]) -> list[int]:
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[order_by_score(scores, np.array(docids, dtype=object))] = np.arange(1, len(scores) + 1)
    return ranks.tolist()
