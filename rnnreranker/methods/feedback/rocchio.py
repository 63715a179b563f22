"""Rocchio PRF."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.feedback.base import Feedback, heaviest, of_norm_1

OF_TERMS: dict[str, Any] = {"fb_docs": 10, "fb_alpha": 1.0, "fb_beta": 0.75, "fb_gamma": 0.15}  # of set_rocchio
OF_VECTORS: dict[str, Any] = {
    "fb_docs": 5,
    "fb_alpha": 0.4,
    "fb_beta": 0.6,
    "fb_gamma": 0.1,
}  # of Li et al. in Pyserini


@dataclass(frozen=True)
class RocchioParams(Params):
    """Settings of Rocchio PRF; none = Pyserini's value for vectors or terms (impacts and words).

    Vectors: "Rocchio PRF 5 A0.4 B0.6" of its reproduction of Li et al. Terms: `set_rocchio`; gamma of
    --rocchio-use-negative.
    """

    fb_docs: int | None = setting(None, "first documents that count for: 5 of vectors, 10 of terms", at_least=1)
    fb_bottom_docs: int = setting(0, "last documents of the first search that count against (0 = none)", at_least=0)
    fb_depth: int | None = setting(
        None,
        "documents of the first search (none = fb_docs + fb_bottom_docs); of words the larger of --hits and this",
        at_least=1,
    )
    fb_terms: int = setting(10, "heaviest terms of the documents that are kept (terms)", at_least=1)
    fb_alpha: float | None = setting(None, "weight of the query: .4 for vectors, 1 for terms", at_least=0)
    fb_beta: float | None = setting(None, "weight of the first documents: .6 for vectors, .75 for terms", at_least=0)
    fb_gamma: float | None = setting(
        None,
        "weight of the last documents, taken off: .1 for vectors, .15 for terms",
        at_least=0,
    )

    def set_for(self, over: str) -> RocchioParams:
        """These settings over vectors, impacts or words, with only `fb_depth` open.

        >>> RocchioParams(fb_beta=0.5).set_for("vectors").fb_alpha
        0.4
        """
        usual = OF_VECTORS if over == "vectors" else OF_TERMS
        unset = {name: value for name, value in usual.items() if getattr(self, name) is None}
        return dataclasses.replace(self, **unset)


class RocchioFeedback(Feedback):
    """Alpha times the query, plus beta times the mean of the first documents, minus gamma times that of the last.

    Over vectors it is Pyserini's DenseVectorRocchioPrf (Li et al., TOIS 2023), over words its `set_rocchio`. Over
    impacts query, documents and their mean have length 1, and the mean keeps its `fb_terms` heaviest terms.
    """

    name = "rocchio"
    over = frozenset({"vectors", "impacts", "words"})
    Params = RocchioParams

    def depth(self, over: str) -> int:
        given = self.params.set_for(over)
        return int(given.fb_depth or given.fb_docs + given.fb_bottom_docs)

    def of_vectors(self, query: np.ndarray, documents: np.ndarray) -> np.ndarray:
        given = self.params.set_for("vectors")
        new: np.ndarray = given.fb_alpha * query + given.fb_beta * documents[: given.fb_docs].mean(axis=0)
        if given.fb_bottom_docs:
            new -= given.fb_gamma * documents[-given.fb_bottom_docs :].mean(axis=0)
        return new

    def of_impacts(self, query: Any, documents: Any, scores: np.ndarray) -> Any:
        given = self.params.set_for("impacts")
        new = given.fb_alpha * of_norm_1(query, "l2") + given.fb_beta * self._mean(documents[: given.fb_docs])
        if given.fb_bottom_docs:
            new = new - given.fb_gamma * self._mean(documents[-given.fb_bottom_docs :])
        return new.maximum(0).tocsr().astype(np.float32)

    def _mean(self, documents: Any) -> Any:
        from scipy.sparse import csr_matrix

        mean = csr_matrix(of_norm_1(documents, "l2").mean(axis=0))
        return of_norm_1(heaviest(mean, self.params.fb_terms), "l2")

    def set_words(self, searcher: Any) -> None:
        given = self.params.set_for("words")
        searcher.set_rocchio(
            top_fb_terms=given.fb_terms,
            top_fb_docs=given.fb_docs,
            bottom_fb_terms=given.fb_terms,
            bottom_fb_docs=given.fb_bottom_docs,
            alpha=given.fb_alpha,
            beta=given.fb_beta,
            gamma=given.fb_gamma,
            use_negative=given.fb_bottom_docs > 0,
        )
