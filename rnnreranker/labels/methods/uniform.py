"""Uniform smoothing: the control that prefers no other candidate."""

from __future__ import annotations

import numpy as np

from rnnreranker.labels import targets
from rnnreranker.labels.judged import JudgedBatch
from rnnreranker.labels.vector_labeler import VectorLabeler


class UniformLabeler(VectorLabeler):
    """Hard labels of which the other candidates get a part, all alike (paper 000, eq. 2).

    The part is what evidence takes from the positives with the same parameters (Section 5.2), so a comparison gives
    both the same ones; with `mass` "own" the positives keep as much as they are.
    """

    name = "uniform"

    @property
    def takes_mass(self) -> bool:
        """Whether positives get the share of probability that evidence would give them: unless asked otherwise."""
        return self.label_params.mass in (None, "evidence")

    def similarities(self, batch: JudgedBatch) -> np.ndarray:
        """Zeros: no candidate is like another."""
        return np.zeros((*batch.grades.shape, batch.real.shape[1]), dtype=np.float32)

    def own_targets(self, batch: JudgedBatch, similarities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores, the grades, and targets: the positives as in hard labels, times their number, the others 1 each."""
        positives = batch.grades.shape[1]
        scores = np.zeros(batch.real.shape)
        scores[:, :positives] = batch.grades
        mass = batch.real.astype(np.float64)
        mass[:, :positives] *= positives * targets.of_grades(batch.grades)
        share = mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-12)
        return np.where(batch.real, scores, -np.inf).astype(np.float32), share.astype(np.float32)
