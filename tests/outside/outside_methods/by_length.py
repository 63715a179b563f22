"""A reranker that reads texts: the nearer a document's number of words is to a wanted one, the better."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnreranker.plugins import Candidates, Params, Query, Reranker, context_setting, setting


@dataclass(frozen=True)
class ByLengthParams(Params):
    """Settings of ByLength."""

    words_wanted: int = setting(3, "number of words of the best document", at_least=1)
    context: int = context_setting()


class ByLength(Reranker):
    """Scores are minus the difference between a document's number of words and the wanted one."""

    name = "by-length"
    needs = frozenset({"texts"})
    Params = ByLengthParams
    params: ByLengthParams

    def scores(self, query: Query, candidates: Candidates) -> np.ndarray:
        """(n,) float64, at most 0."""
        lengths = np.array([len(text.split()) for text in candidates.texts], dtype=np.float64)
        return -np.abs(lengths - self.params.words_wanted)
