"""Evidence-based labels: reciprocal neighbours of the positives, and what lies near them, are likely relevant too."""

from __future__ import annotations

import numpy as np

from rnnreranker.labels.judged import JudgedBatch
from rnnreranker.labels.vector_labeler import VectorLabeler


class EvidenceLabeler(VectorLabeler):
    """s* = lambda s + (1 - lambda) J of candidate and positive (paper 000, Algorithm 1)."""

    name = "evidence"
    takes_mass = False  # its own mass is meant

    def similarities(self, batch: JudgedBatch) -> np.ndarray:
        """(B, R, N) float32: s*."""
        return self.similarity(batch).mixed(batch.positives)
