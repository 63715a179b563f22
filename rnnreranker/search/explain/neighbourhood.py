"""One context taken apart: what a score is made of, who is whose reciprocal neighbour, what each shared one adds.

A score is a sum of parts, each a weight times a value: of the rank in the run, the score there, the similarity to the
query, the Jaccard similarity J to each probe, and the mean score of the nearest candidates. With v the expanded
weights, J(p, i) = sum_j min(v_pj, v_ij) / sum_j max(v_pj, v_ij), so every element j adds
min(v_pj, v_ij) / sum_j max(v_pj, v_ij) to it; these amounts sum to J.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from rnnreranker.rnn import RnnParams, reference
from rnnreranker.runs.head import order_by_score

Values = Sequence[float] | np.ndarray | None  # N, one of every candidate


@dataclass(frozen=True)
class ScorePart:
    """A part of every score of a context: `weight` times the candidate's value.

    kind: "rank" and "run" of the first stage, "geo", the similarity to the query, "jac", J with the query, "near", J
    with a candidate, "lent", the mean score, before smoothing,
    of the nearest candidates. probe: the element whose neighbours are compared, of "jac" and "near".
    """

    kind: Literal["rank", "run", "geo", "jac", "near", "lent"]
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


class SharedWith(Mapping[int, tuple[Shared, ...]]):
    """What an element has in common with each probe, the largest amount first; computed when it is read.

    Args:
        expanded: (m, m) expanded weights; element: a row of them; probes: rows that it is compared with.
    """

    def __init__(self, expanded: np.ndarray, element: int, probes: Sequence[int]) -> None:
        self._expanded, self._element, self._probes = expanded, element, probes

    def __getitem__(self, probe: int) -> tuple[Shared, ...]:
        if probe not in self._probes:
            raise KeyError(probe)
        return _shared(self._expanded[probe], self._expanded[self._element])

    def __iter__(self) -> Iterator[int]:
        return iter(self._probes)

    def __len__(self) -> int:
        return len(self._probes)


@dataclass(frozen=True)
class Candidate:
    """A candidate with both ranks (from 1) and its score, the sum of its amounts.

    element: its number in the context, from 1. run_score: of the first stage, None where it gave none. similarity:
    inner product with the query, None where it is not known. by_similarity: the rank, from 1, that it alone would give.
    values, amounts: of the neighbourhood's parts, amount = weight * value. reciprocal: the probes that it is a
    reciprocal neighbour of. extended: those whose set it belongs to only by the extension. shared: what it has in
    common with each probe, the largest amount first. nearest: elements whose scores it takes a share of, nearest first.
    mixed: its score before smoothing.
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
    reciprocal: frozenset[int]
    extended: frozenset[int]
    shared: Mapping[int, tuple[Shared, ...]]
    nearest: tuple[int, ...]
    mixed: float

    @property
    def sets(self) -> frozenset[int]:
        """The probes whose set it belongs to."""
        return self.reciprocal | self.extended

    @property
    def moved(self) -> int:
        """Ranks up; negative = down."""
        return self.before - self.after


@dataclass(frozen=True)
class Known:
    """What a graph of the collection knows of a context of N candidates.

    k: neighbours of a document in it. pairs: of candidates that are known, of all `of`; the others count as `lowest`.
    query: where similarities to the query come from: "vectors", "run", its scores, or "dealt", those of the first
    candidate. dealt: how many of these there are.
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

    candidates: in their new order. parts: of every score, those whose weight is not 0. probes: the elements whose
    neighbours are compared with a candidate's, the query first. steps: all intermediate results, element 0 = query,
    element i = candidate i of those given. reciprocal: m sets, before the extension; steps.sets holds them after it.
    known: what a graph knows; None where similarities are those of vectors.
    """

    params: RnnParams
    candidates: tuple[Candidate, ...]
    parts: tuple[ScorePart, ...]
    probes: tuple[int, ...]
    steps: reference.Steps
    reciprocal: list[set[int]]
    known: Known | None = None

    def docid(self, element: int) -> str:
        """The docid of an element of the context, which must not be the query."""
        return self._docids[element]

    @cached_property
    def _docids(self) -> dict[int, str]:
        return {candidate.element: candidate.docid for candidate in self.candidates}

    def links(self) -> list[tuple[int, int, float]]:
        """Pairs of reciprocal neighbours (i < j) with the mean of v_ij and v_ji, the weights before the averaging."""
        weights = self.steps.weights
        return [
            (i, j, float(weights[i, j] + weights[j, i]) / 2)
            for i, members in enumerate(self.reciprocal)
            for j in sorted(members)
            if i < j
        ]


def taken_apart(
    done: reference.Steps,
    docids: list[str],
    params: RnnParams,
    base: Values,
    before: Sequence[int] | None,
    after: Sequence[int] | None,
    known: Known | None = None,
) -> Neighbourhood:
    """A context of N candidates taken apart; docids, base, before and after as in `contexts.neighbourhood`.

    done: its steps, of vectors or of what a graph knows; params: where inner products with the query are not known,
    those `without_query`; known: what the graph knows.
    """
    made = reference.parts(done, params, base)
    reciprocal = reference.reciprocal_sets(done.lists)
    parts, values = _parts(made, params)
    products = None if known is not None and known.query == "dealt" else done.raw[0, 1:]
    similar = None if products is None else _ranks(products, docids)
    first = before if before is not None else range(1, len(docids) + 1)
    last = after if after is not None else _ranks(made.scores, docids)
    candidates = [
        Candidate(
            element=i + 1,
            docid=docid,
            before=int(first[i]),
            after=int(last[i]),
            run_score=None if base is None else float(base[i]),
            similarity=None if products is None else float(products[i]),
            by_similarity=None if similar is None else int(similar[i]),
            values=tuple(float(row[i]) for row in values),
            amounts=tuple(part.weight * float(row[i]) for part, row in zip(parts, values, strict=True)),
            score=float(made.scores[i]),
            reciprocal=frozenset(one for one in made.probes if i + 1 in reciprocal[one] and i + 1 != one),
            extended=frozenset(one for one in made.probes if i + 1 in done.sets[one] and i + 1 not in reciprocal[one]),
            shared=SharedWith(done.expanded, i + 1, made.probes),
            nearest=tuple(made.nearest[i]),
            mixed=float(made.mixed[i]),
        )
        for i, docid in enumerate(docids)
    ]
    ordered = tuple(sorted(candidates, key=lambda c: c.after))
    return Neighbourhood(params, ordered, parts, tuple(made.probes), done, reciprocal, known)


def _parts(made: reference.Parts, params: RnnParams) -> tuple[tuple[ScorePart, ...], list[np.ndarray]]:
    """The parts that have a weight, and the values of the candidates for each, (N,) float64."""
    kinds: tuple[Literal["rank", "run", "geo"], ...] = ("rank", "run", "geo") if len(made.terms) > 1 else ("geo",)
    rest = 1 - params.smoothing if params.smoothed_over else 1.0
    pairs: list[tuple[ScorePart, np.ndarray]] = [
        (ScorePart(kind, rest * params.lam * float(share)), term)
        for kind, share, term in zip(kinds, made.weights, made.terms, strict=True)
    ]
    each = rest * (1 - params.lam) / len(made.probes)
    pairs += [
        (ScorePart("near" if probe else "jac", each, probe), row)
        for probe, row in zip(made.probes, made.jaccard, strict=True)
    ]
    if params.smoothed_over:
        pairs.append((ScorePart("lent", params.smoothing), made.lent))
    pairs = [(part, row) for part, row in pairs if part.weight]
    return tuple(part for part, _ in pairs), [row for _, row in pairs]


def _ranks(scores: np.ndarray, docids: list[str]) -> np.ndarray:
    """(N,) int64: the rank of each candidate, from 1, by score descending, ties by docid."""
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
