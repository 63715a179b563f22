"""Labels by similarity to the query: the control that distils the encoder into itself."""

from __future__ import annotations

import numpy as np

from rnnreranker.labels.judged import JudgedBatch
from rnnreranker.labels.vector_labeler import VectorLabeler


class QueryLabeler(VectorLabeler):
    """The inner product of candidate and query, transformed as the scores of evidence are (paper 000, Section 5.2)."""

    name = "query"
    of_documents = False

    def similarities(self, batch: JudgedBatch) -> np.ndarray:
        """(B, R, N): the same for every positive; grades weigh it as they weigh evidence."""
        near = self.similarity(batch).geometric(np.zeros(1, dtype=np.int64))
        return np.broadcast_to(near, (len(near), batch.grades.shape[1], near.shape[2]))
