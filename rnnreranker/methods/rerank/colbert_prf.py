"""ColBERT-PRF inside the context: the candidates of a run, ordered by a query that their first ones have expanded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.methods.feedback.colbert import CLUSTERS, DOCS, EMBEDDINGS, WEIGHT, expansion
from rnnreranker.methods.rerank.base import Candidates, Query, Reranker
from rnnreranker.methods.rerank.prf_average import DEPTH
from rnnreranker.parts.tokens.lexicon import Lexicon
from rnnreranker.parts.tokens.neighbours import neighbours_in
from rnnreranker.runs.head import order_by_score


@dataclass(frozen=True)
class ColbertPrfParams(Params):
    """Settings of ColBERT-PRF among candidates; the defaults are those of `--prf colbert`."""

    prf_depth: int = setting(DOCS, DEPTH, at_least=1)
    prf_clusters: int = setting(CLUSTERS, "clusters of these candidates' tokens (f_c)", at_least=1)
    prf_embeddings: int = setting(
        EMBEDDINGS, "centroids of clusters that join the query, those of the rarest words (f_e)", at_least=1
    )
    prf_expansion_weight: float = setting(
        WEIGHT, "weight of the centroids, times the IDF of the word that each is nearest to (beta)", at_least=0
    )
    context: int = context_setting(1000)


class ColbertPrfReranker(Reranker):
    """Weighted MaxSim with the query that ColBERT-PRF expands: its "ReRanker", the teacher of paper 002 (eq. 6).

    Feedback are the `prf_depth` candidates that MaxSim with the query itself puts first, ties by docid, so that neither
    the scores of the run nor its order count: of a run of late interaction they are its first. A candidate without
    tokens is no feedback and scores 0, and a query without tokens is not expanded.

    Args and Raises: as `Reranker`; MissingDependencyError where scikit-learn is not installed.
    """

    name: ClassVar[str] = "colbert-prf"
    needs = frozenset({"query tokens", "tokens"})
    Params: ClassVar[type[Params]] = ColbertPrfParams
    params: Any  # a subclass has more

    def describe(self) -> dict[str, Any]:
        """As `Reranker.describe`, and how the words of centroids are found."""
        near = "exact" if neighbours_in(self.inputs.tokens) is None else "ivf-pq"
        return super().describe() | {"token_search": near}

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64: weighted MaxSim."""
        return self.scores_knowing(query, candidates)

    def scores_knowing(self, query: Query, candidates: Candidates, known: Sequence[int] = ()) -> np.ndarray:
        """(n,) float64: the scores where the candidates at the places `known` are the first feedback.

        Others follow them up to `prf_depth` in all: relevance feedback, completed by pseudo-relevance feedback.
        """
        return self._maxsim(*self.asked(query, candidates, known), candidates.rows)

    def asked(self, query: Query, candidates: Candidates, known: Sequence[int] = ()) -> tuple[np.ndarray, np.ndarray]:
        """The tokens (p, d) float32 of the expanded query, and their weights (p,) float64; known: as `scores_knowing`.

        Any document can be scored with them, candidate or not: the centroids are reused "for estimating R*_q(p) of any
        p" (paper 002, 2.3.1).
        """
        own, weights = query.tokens, np.ones(len(query.tokens))
        if len(own):
            near = order_by_score(self._maxsim(own, weights, candidates.rows), candidates.docids)
            order = list(dict.fromkeys([*known, *near.tolist()]))
            filled = [row for row in candidates.rows[order].tolist() if self._lengths[row]]
            feedback = np.array(filled[: self.params.prf_depth], dtype=np.int64)
            given = self.params
            found = expansion(
                feedback, self._lexicon, given.prf_clusters, given.prf_embeddings, given.prf_expansion_weight
            )
            own, weights = found.joined(own)
        return own, weights

    def _maxsim(self, tokens: np.ndarray, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        bounds = np.array([0, len(tokens)])
        found: np.ndarray = self.inputs.tokens.scores(tokens, bounds, rows, self.threads, weights)[0]
        return found.astype(np.float64)

    @cached_property
    def _lexicon(self) -> Lexicon:
        return Lexicon(self.inputs.tokens, neighbours_in(self.inputs.tokens))

    @cached_property
    def _lengths(self) -> np.ndarray:
        """(N,) int64: the number of tokens of each document."""
        return np.diff(self.inputs.tokens.offsets)
