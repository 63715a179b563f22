"""RM3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.feedback.base import Feedback, heaviest, of_norm_1


@dataclass(frozen=True)
class Rm3Params(Params):
    """Settings of RM3, with the defaults of Pyserini's `set_rm3`."""

    fb_docs: int = setting(10, "first documents that the new query is made of", at_least=1)
    fb_terms: int = setting(10, "heaviest terms of the documents that are kept", at_least=1)
    fb_weight: float = setting(0.5, "weight of the query's terms; the rest is the documents'", at_least=0, at_most=1)
    fb_filter: bool = setting(True, "filter of terms: letters and digits alone (words)")


class Rm3Feedback(Feedback):
    """The query's terms by `fb_weight`, mixed with the `fb_terms` heaviest terms of its first `fb_docs` documents.

    Over words it is Pyserini's `set_rm3` (Anserini's Rm3Reranker). Over impacts each document's `fb_terms` heaviest
    weights, divided by their sum, count by its score; the heaviest of all join the query's, both divided by their sum.
    """

    name = "rm3"
    over = frozenset({"impacts", "words"})
    Params = Rm3Params

    def of_impacts(self, query: Any, documents: Any, scores: np.ndarray) -> Any:
        from scipy.sparse import csr_matrix

        given = self.params
        own = of_norm_1(heaviest(documents, given.fb_terms), "l1")
        model = of_norm_1(heaviest(csr_matrix(csr_matrix(np.asarray(scores)[None]) @ own), given.fb_terms), "l1")
        new = given.fb_weight * of_norm_1(query, "l1") + (1 - given.fb_weight) * model
        return new.tocsr().astype(np.float32)

    def set_words(self, searcher: Any) -> None:
        given = self.params
        searcher.set_rm3(
            fb_terms=given.fb_terms,
            fb_docs=given.fb_docs,
            original_query_weight=given.fb_weight,
            filter_terms=given.fb_filter,
        )
