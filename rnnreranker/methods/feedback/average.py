"""Average PRF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.feedback.base import Feedback


@dataclass(frozen=True)
class AverageParams(Params):
    """Settings of average PRF; 3 documents as in Pyserini's "Average PRF 3"."""

    fb_docs: int = setting(3, "first documents that the new query is made of", at_least=1)


class AverageFeedback(Feedback):
    """The mean of the query and its first `fb_docs` documents, as vectors or as weights of terms.

    Over vectors it is Pyserini's DenseVectorAveragePrf (Li et al., TOIS 2023).
    """

    name = "average"
    over = frozenset({"vectors", "impacts"})
    Params = AverageParams

    def of_vectors(self, query: np.ndarray, documents: np.ndarray) -> np.ndarray:
        return np.concatenate((query[None], documents)).mean(axis=0)

    def of_impacts(self, query: Any, documents: Any, scores: np.ndarray) -> Any:
        from scipy.sparse import csr_matrix

        weights = np.full((1, documents.shape[0]), 1 / (1 + documents.shape[0]), dtype=np.float32)
        return csr_matrix((query + csr_matrix(np.ones_like(weights)) @ documents) * weights[0, 0])
