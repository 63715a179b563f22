"""One context taken apart: what a score is made of, who is whose reciprocal neighbour, what each shared one adds.

A score is a sum of parts, each a weight times a value: of the rank in the run, the score there, the similarity to the
query, and the Jaccard similarity J to each probe. With v the expanded weights, J(p, i) = sum_j min(v_pj, v_ij) /
sum_j max(v_pj, v_ij), so every element j adds min(v_pj, v_ij) / sum_j max(v_pj, v_ij) to it; these amounts sum to J.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rnnreranker.errors import InputError
from rnnreranker.rnn import RnnParams, reference
from rnnreranker.runs.head import order_by_score


@dataclass(frozen=True)
class Part:
    """A part of every score of a context: `weight` times the candidate's value.

    kind: "rank" and "run" of the first stage, "geo", the similarity to the query, "jac", J with the query, "near", J
    with a candidate. probe: the element whose neighbours are compared, of "jac" and "near".
    """

    kind: Literal["rank", "run", "geo", "jac", "near"]
    weight: float
    probe: int = 0


@dataclass(frozen=True)
class Shared:
    """An element that a probe and a candidate have in common.

    element: 0 = the query itself. probe_weight, weight: its expanded weights v_pj and v_ij. amount: what it adds to J.
    share: amount as a part of J, in [0, 1] for weights >= 0; 0 where J is 0.
    """

    element: int
    probe_weight: float
    weight: float
    amount: float
    share: float


@dataclass(frozen=True)
class Candidate:
    """A candidate with both ranks (from 1) and its score s*, the sum of its amounts.

    element: its number in the context, from 1. run_score: of the first stage, None where it gave none. similarity:
    inner product with the query. by_similarity: the rank, from 1, that it alone would give. values, amounts: of the
    neighbourhood's parts, amount = weight * value. reciprocal: the probes that it is a reciprocal neighbour of.
    extended: those whose set it belongs to only by the extension. shared: what it has in common with each probe, the
    largest amount first.
    """

    element: int
    docid: str
    before: int
    after: int
    run_score: float | None
    similarity: float
    by_similarity: int
    values: tuple[float, ...]
    amounts: tuple[float, ...]
    score: float
    reciprocal: frozenset[int]
    extended: frozenset[int]
    shared: dict[int, tuple[Shared, ...]]

    @property
    def sets(self) -> frozenset[int]:
        """The probes whose set it belongs to."""
        return self.reciprocal | self.extended

    @property
    def moved(self) -> int:
        """Places up; negative = down."""
        return self.before - self.after


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A query's context and every step of its scores.

    candidates: in their new order. parts: of every score, those whose weight is not 0. probes: the elements whose
    neighbours are compared with a candidate's, the query first. steps: all intermediate results, element 0 = query,
    element i = candidate i of those given. reciprocal: m sets, before the extension; steps.sets holds them after it.
    """

    params: RnnParams
    candidates: tuple[Candidate, ...]
    parts: tuple[Part, ...]
    probes: tuple[int, ...]
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
    base: Sequence[float] | np.ndarray | None = None,
    before: Sequence[int] | None = None,
    after: Sequence[int] | None = None,
) -> Neighbourhood:
    """The context of one query taken apart; its scores are those of `rnn_similarity`, in float64.

    Args:
        query: (d,) float32.
        candidates: (N, d) float32, N >= 1, all of which take part, in the order of the first stage; `params.context`
            is not applied here.
        docids: N distinct names of the candidates.
        params: the parameters of the reranker.
        base: N scores of the first stage, 0 where they tell nothing (None = it ranks by the inner products, in any
            order of the candidates).
        before: N ranks from 1 before reranking (None = the order given).
        after: N ranks after it (None = by s* descending, ties by docid).

    Raises:
        InputError: no candidates, vectors of other dimensions, as many docids or ranks as candidates are not given,
            NaN or infinite vectors or scores.
    """
    query, candidates = np.asarray(query, dtype=np.float32), np.asarray(candidates, dtype=np.float32)
    if query.ndim != 1 or candidates.ndim != 2 or not len(candidates) or candidates.shape[1] != len(query):
        raise InputError(
            f"query has shape {query.shape} and candidates {candidates.shape}: expected (d,) and (N, d), N >= 1"
        )
    for name, values in (("docids", docids), ("base", base), ("before", before), ("after", after)):
        if values is not None and len(values) != len(candidates):
            raise InputError(f"{name} has {len(values)} entries for {len(candidates)} candidates: expected as many")
    if not (np.isfinite(query).all() and np.isfinite(candidates).all()):
        raise InputError("NaN or infinite values in a vector; build the index, or encode the queries, again")
    if base is not None and not np.isfinite(base).all():
        raise InputError("NaN or infinite scores in base; expected those of the first stage")
    return _taken_apart(np.vstack([query[None], candidates]), list(docids), params, base, before, after)


def _taken_apart(
    vectors: np.ndarray,
    docids: list[str],
    params: RnnParams,
    base: Sequence[float] | np.ndarray | None,
    before: Sequence[int] | None,
    after: Sequence[int] | None,
) -> Neighbourhood:
    done = reference.steps(vectors, params)
    made = reference.parts(done, params, base)
    reciprocal = reference.reciprocal_sets(done.lists)
    parts, values = _parts(made, params)
    similar = _ranks(done.raw[0, 1:], docids)
    first = before if before is not None else range(1, len(docids) + 1)
    last = after if after is not None else _ranks(made.scores, docids)
    found = [
        Candidate(
            element=i + 1,
            docid=docid,
            before=int(first[i]),
            after=int(last[i]),
            run_score=None if base is None else float(base[i]),
            similarity=float(done.raw[0, i + 1]),
            by_similarity=int(similar[i]),
            values=tuple(float(row[i]) for row in values),
            amounts=tuple(part.weight * float(row[i]) for part, row in zip(parts, values, strict=True)),
            score=float(made.scores[i]),
            reciprocal=frozenset(probe for probe in made.probes if i + 1 in reciprocal[probe] - {probe}),
            extended=frozenset(probe for probe in made.probes if i + 1 in done.sets[probe] - reciprocal[probe]),
            shared={probe: _shared(done.expanded[probe], done.expanded[i + 1]) for probe in made.probes},
        )
        for i, docid in enumerate(docids)
    ]
    ordered = tuple(sorted(found, key=lambda c: c.after))
    return Neighbourhood(params, ordered, parts, tuple(made.probes), done, reciprocal)


def _parts(made: reference.Parts, params: RnnParams) -> tuple[tuple[Part, ...], list[np.ndarray]]:
    """The parts that have a weight, and the values of the candidates for each, (N,) float64."""
    kinds: tuple[Literal["rank", "run", "geo"], ...] = ("rank", "run", "geo") if len(made.terms) > 1 else ("geo",)
    pairs = [
        (Part(kind, params.lam * float(share)), term)
        for kind, share, term in zip(kinds, made.weights, made.terms, strict=True)
    ]
    each = (1 - params.lam) / len(made.probes)
    pairs += [
        (Part("near" if probe else "jac", each, probe), row)
        for probe, row in zip(made.probes, made.jaccard, strict=True)
    ]
    pairs = [(part, row) for part, row in pairs if part.weight]
    return tuple(part for part, _ in pairs), [row for _, row in pairs]


def _ranks(scores: np.ndarray, docids: list[str]) -> np.ndarray:
    """(N,) int64: the place of each candidate, from 1, by score descending, ties by docid."""
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[order_by_score(scores, np.array(docids, dtype=object))] = np.arange(1, len(scores) + 1)
    return ranks


def _shared(probe: np.ndarray, row: np.ndarray) -> tuple[Shared, ...]:
    """What each element adds to the Jaccard similarity of two (m,) rows of expanded weights, the largest first."""
    below, above = np.minimum(probe, row), reference.total(np.maximum(probe, row))
    numerator = reference.total(below)
    if above == 0 or not abs(numerator) < abs(above) * 3e38:  # J is 0 there
        return ()
    shared = [
        Shared(
            int(j),
            float(probe[j]),
            float(row[j]),
            float(below[j]) / above,
            float(below[j]) / numerator if numerator else 0.0,
        )
        for j in np.flatnonzero(below)
    ]
    return tuple(sorted(shared, key=lambda one: (-one.amount, one.element)))
