"""Feedback among the candidates of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.method import Chosen, choose, methods
from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.methods.rerank.base import Candidates, Query
from rnnreranker.methods.rerank.late import LateReranker
from rnnreranker.parts.tokens.neighbours import Lexicon, neighbours_in
from rnnreranker.parts.vectors.exact import inner_products
from rnnreranker.runs.head import order_by_score

NEEDS = {  # what queries and candidates are compared by → what is read
    "vectors": frozenset({"run scores", "query vectors", "vectors"}),
    "tokens": frozenset({"query tokens", "tokens"}),
}


@dataclass(frozen=True)
class PrfParams(Params):
    """Settings of feedback among candidates; in the written form those of the feedback are beside them.

    >>> PrfParams("average:fb_docs=5").over
    'vectors'
    """

    feedback: str = setting(
        "rocchio", "feedback that makes the new query: rocchio, average, colbert, …, and its settings"
    )
    context: int = context_setting()

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.over

    @property
    def chosen(self) -> Chosen:
        return choose("feedback", self.feedback)

    @property
    def over(self) -> str:
        """ "vectors" or "tokens"; InputError for other feedback."""
        name, over = self.chosen.name, self.chosen.method.over
        if both := [one for one in NEEDS if one in over]:
            return both[0]
        fitting = [one for one, method in methods("feedback").items() if method.over & set(NEEDS)]
        over = " and ".join(sorted(over))
        raise InputError(f"feedback {name}: is over {over}; among candidates expected {', '.join(fitting)}")


class PrfReranker(LateReranker):
    """Inner products or MaxSim with the query that feedback makes of a query and its first candidates.

    Over vectors, feedback uses the run's first candidates; over tokens those with the largest MaxSim, ties by docid:
    ColBERT-PRF's "ReRanker", the teacher of paper 002 (eq. 6). Candidates without tokens score 0; a query without
    tokens stays unchanged.
    """

    name = "prf"
    needs = NEEDS["vectors"]
    Params = PrfParams
    inner = ("feedback", "feedback")

    @classmethod
    def needs_with(cls, params: Any) -> frozenset[str]:
        return NEEDS[params.over]

    def prepare(self) -> None:
        chosen = self.params.chosen
        self.feedback: Any = chosen.method(chosen.params)
        self.needs = self.needs_with(self.params)  # type: ignore[misc]  # of this one, not of the method

    def describe(self) -> dict[str, Any]:
        own = {"name": self.name, "feedback": self.feedback.name, **self.feedback.params.to_dict()}
        own["context"] = self.params.context
        if self.params.over == "tokens":
            own["token_search"] = "exact" if neighbours_in(self.inputs.tokens) is None else "ivf-pq"
        return own

    def scores(self, query: Query, candidates: Candidates, known: Sequence[int] = ()) -> np.ndarray:
        if "vectors" not in self.needs:
            return super().scores(query, candidates, known)
        first = candidates.vectors[: self.feedback.depth("vectors")]
        return inner_products(self.feedback.of_vectors(query.vector, first), candidates.vectors)

    def asked(self, query: Query, candidates: Candidates, known: Sequence[int] = ()) -> tuple[np.ndarray, np.ndarray]:
        """The new query's tokens, and their weights: any document can be scored with them (paper 002, 2.3.1)."""
        own, weights = super().asked(query, candidates)
        if len(own):
            near = order_by_score(self.maxsim(own, weights, candidates.rows), candidates.docids)
            rows = candidates.rows[list(dict.fromkeys([*known, *near.tolist()]))]
            first = rows[self._lengths[rows] > 0][: self.feedback.depth("tokens")]
            if len(first):
                return self.feedback.of_tokens(own, first, self._lexicon)
        return own, weights

    @cached_property
    def _lexicon(self) -> Lexicon:
        return Lexicon(self.inputs.tokens, neighbours_in(self.inputs.tokens))

    @cached_property
    def _lengths(self) -> np.ndarray:
        """(N,) int64: the number of tokens of each document."""
        return np.diff(self.inputs.tokens.offsets)
