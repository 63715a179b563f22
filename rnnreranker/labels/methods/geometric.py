"""Labels by the inner product with the positives."""

from __future__ import annotations

import numpy as np

from rnnreranker.labels.judged import JudgedBatch
from rnnreranker.labels.vector_labeler import VectorLabeler


class GeometricLabeler(VectorLabeler):
    """The inner product of candidate and positive alone, scaled as `params` says: evidence with lambda = 1."""

    name = "geometric"

    def similarities(self, batch: JudgedBatch) -> np.ndarray:
        """(B, R, N) float32: s."""
        return self.similarity(batch).geometric(batch.positives)
