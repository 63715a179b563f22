"""Feedback inside the context: the candidates of a run, ordered by the query that its first ones make."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.base.chosen_method import Chosen, choose
from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import methods
from rnnreranker.base.process.threads import one_blas_thread
from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker
from rnnreranker.parts.tokens.lexicon import Lexicon
from rnnreranker.parts.tokens.neighbours import neighbours_in
from rnnreranker.parts.vectors.of_run import ranges_of
from rnnreranker.runs.head import choose_head, order_by_score, starts_of, with_new_head

if TYPE_CHECKING:
    from rnnreranker.methods.feedback import Feedback
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run

NEEDS = {  # what queries and candidates are compared by → what is read
    "vectors": frozenset({"run scores", "query vectors", "vectors"}),
    "tokens": frozenset({"query tokens", "tokens"}),
}


@dataclass(frozen=True)
class PrfParams(Params):
    """Settings of feedback among candidates; in the written form those of the feedback stand beside them.

    Raises:
        InputError: no such feedback, one over neither vectors nor tokens, settings that it does not have.

    >>> PrfParams("average:fb_docs=5").over
    'vectors'
    """

    feedback: str = setting(
        "rocchio", "feedback that makes the new query: rocchio, average, colbert, …, and its settings", tunable=False
    )
    context: int = context_setting()

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.over

    @property
    def chosen(self) -> Chosen:
        """The feedback with its settings."""
        return choose("feedback", self.feedback)

    @property
    def over(self) -> str:
        """What the feedback reads of queries and candidates: "vectors" or "tokens"."""
        for one in NEEDS:
            if one in self.chosen.method.over:
                return one
        fitting = [name for name, method in methods("feedback").items() if method.over & set(NEEDS)]
        over = " and ".join(sorted(self.chosen.method.over))
        raise InputError(f"feedback {self.chosen.name}: is over {over}; among candidates expected {', '.join(fitting)}")


class PrfReranker(Reranker):
    """Inner products or MaxSim with the query that feedback makes of a query and its first candidates.

    Over vectors feedback are the first candidates of the run. Over tokens they are those that MaxSim with the query
    itself puts first, ties by docid, so that neither scores nor order of the run count: ColBERT-PRF's "ReRanker", the
    teacher of paper 002 (eq. 6). A candidate without tokens is no feedback and scores 0, and a query without tokens
    stays as it is.

    Args and Raises: as `Reranker`; MissingDependencyError where ColBERT-PRF lacks scikit-learn.
    """

    name: ClassVar[str] = "prf"
    needs = NEEDS["vectors"]
    Params: ClassVar[type[Params]] = PrfParams
    params: PrfParams
    inner: ClassVar[tuple[str, str]] = ("feedback", "feedback")

    @classmethod
    def needs_with(cls, params: Any) -> frozenset[str]:
        """By what the feedback is over."""
        return NEEDS[params.over]

    def prepare(self) -> None:
        chosen = self.params.chosen
        self.feedback: Feedback = chosen.method(chosen.params)
        self.needs = self.needs_with(self.params)  # type: ignore[misc]  # of this one, not of the method

    def describe(self) -> dict[str, Any]:
        """Name and parameters, those of the feedback too, and over tokens how the words of centroids are met."""
        own = {"name": self.name, "feedback": self.feedback.name, **self.feedback.params.to_dict()}
        own["context"] = self.params.context
        if self.params.over == "tokens":
            own["token_search"] = "exact" if neighbours_in(self.inputs.tokens) is None else "ivf-pq"
        return own

    def rerank(self, run: Run, query_vectors: QueryVectors | None = None) -> Run:
        """As `Reranker.rerank`; over vectors many queries at a time."""
        if self.params.over != "vectors":
            return super().rerank(run, query_vectors)
        queries, (rows_of, usable) = self._query_vectors(run, query_vectors), self._usable(run)
        chosen = choose_head(run, self.params.context, usable)
        entries, starts = run.rows[chosen], starts_of(chosen, run.offsets)
        rows, bounds, lengths = rows_of[entries], starts.tolist(), np.diff(starts)
        new, dimension = np.empty(len(entries), dtype=np.float64), self.vectors.dimension
        ranges, cuts = ranges_of(bounds, dimension), (np.flatnonzero(np.diff(lengths)) + 1).tolist()
        longest = max((bounds[last] - bounds[first] for first, last in ranges), default=0)
        buffer, wide = np.empty((longest, dimension), dtype=np.float32), np.empty((longest, dimension))
        with one_blas_thread():
            for first, last in progress(ranges, unit="chunks", what="rerank"):
                begin, size = bounds[first], bounds[last] - bounds[first]
                vectors = self.vectors.fetch(rows[begin : begin + size], buffer[:size])
                inside = cuts[bisect_right(cuts, first) : bisect_left(cuts, last)]
                for one, other in itertools.pairwise([first, *inside, last]):  # queries with equally many candidates
                    part, shape = slice(bounds[one] - begin, bounds[other] - begin), (other - one, int(lengths[one]))
                    if shape[1]:
                        own, into = (values[part].reshape(*shape, dimension) for values in (vectors, wide))
                        self._products(queries[one:other], own, into, new[bounds[one] : bounds[other]].reshape(shape))
        if not (finite := np.isfinite(new)).all():  # as of every vector that has NaN or infinite values
            number = bisect_right(bounds, int(np.argmin(finite))) - 1
            part = slice(bounds[number], bounds[number + 1])
            self._vectors_of(rows[part], run.docids[entries[part]])
            self._checked(run.qids[number], new[part], int(lengths[number]))
        return with_new_head(run, chosen, new)

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64: inner products with the new query vector, or weighted MaxSim with the new query's tokens."""
        if self.params.over == "tokens":
            return self.scores_knowing(query, candidates)
        vectors, products = candidates.vectors[None], np.empty((1, len(candidates)))
        self._products(query.vector[None], vectors, np.empty(vectors.shape), products)
        return products[0]

    def _products(self, queries: np.ndarray, candidates: np.ndarray, wide: np.ndarray, into: np.ndarray) -> None:
        """Put inner products of candidates (B, n, d) with the new queries into (B, n) float64.

        Rows are summed as `inner_products` sums them. queries: (B, d) float32; wide: (B, n, d) float64, to write to.
        """
        first = candidates[:, : self.feedback.depth("vectors")]
        if self.feedback.together:
            new = self.feedback.of_vectors(queries, first)
        else:
            pairs = zip(queries, first, strict=True)
            new = np.stack([self.feedback.of_vectors(query, documents) for query, documents in pairs])
        np.copyto(wide, candidates)
        np.einsum("qnd,qd->qn", wide, new.astype(np.float64), out=into)

    def scores_knowing(self, query: Query, candidates: Candidates, known: Sequence[int] = ()) -> np.ndarray:
        """(n,) float64, over tokens: the scores where the candidates at the places `known` are the first feedback.

        Others follow them up to the feedback's depth: relevance feedback, completed by pseudo-relevance feedback.
        """
        return self._maxsim(*self.asked(query, candidates, known), candidates.rows)

    def asked(self, query: Query, candidates: Candidates, known: Sequence[int] = ()) -> tuple[np.ndarray, np.ndarray]:
        """The tokens (p, d) float32 of the new query, and their weights (p,) float64; known: as `scores_knowing`.

        Any document can be scored with them, candidate or not: the centroids are reused "for estimating R*_q(p) of any
        p" (paper 002, 2.3.1).
        """
        own, weights = query.tokens, np.ones(len(query.tokens))
        if len(own):
            near = order_by_score(self._maxsim(own, weights, candidates.rows), candidates.docids)
            order = list(dict.fromkeys([*known, *near.tolist()]))
            filled = [row for row in candidates.rows[order].tolist() if self._lengths[row]]
            first = np.array(filled[: self.feedback.depth("tokens")], dtype=np.int64)
            if len(first):
                return self.feedback.of_tokens(own, first, self._lexicon)
        return own, weights

    def _maxsim(self, tokens: np.ndarray, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        scored: np.ndarray = self.inputs.tokens.scores(tokens, np.array([0, len(tokens)]), rows, self.threads, weights)[
            0
        ]
        return scored.astype(np.float64)

    @cached_property
    def _lexicon(self) -> Lexicon:
        return Lexicon(self.inputs.tokens, neighbours_in(self.inputs.tokens))

    @cached_property
    def _lengths(self) -> np.ndarray:
        """(N,) int64: the number of tokens of each document."""
        return np.diff(self.inputs.tokens.offsets)
