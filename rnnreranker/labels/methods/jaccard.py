"""Labels by reciprocal neighbours in common with the positives."""

from __future__ import annotations

import numpy as np

from rnnreranker.labels.judged import JudgedBatch
from rnnreranker.labels.vector_labeler import VectorLabeler


class JaccardLabeler(VectorLabeler):
    """The Jaccard similarity J of candidate and positive alone (paper 000, eq. 11): evidence with lambda = 0."""

    name = "jaccard"

    def similarities(self, batch: JudgedBatch) -> np.ndarray:
        """(B, R, N) float32: J."""
        return self.similarity(batch).jaccard(batch.positives)
