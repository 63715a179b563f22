"""The simple labelers: judgements, a run, and how similar candidates are to positives or the query, each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.base.settings import Params, context_setting
from rnnreranker.labels import targets
from rnnreranker.labels.judged import JudgedBatch, JudgedContext
from rnnreranker.labels.methods.base import ContextLabeler, Labeler, Labelled, VectorLabeler


class EvidenceLabeler(VectorLabeler):
    """s* = lambda s + (1 - lambda) J of candidate and positive (paper 000, Algorithm 1)."""

    name = "evidence"
    takes_mass = False  # its own mass is meant

    def similarities(self, batch: JudgedBatch) -> np.ndarray:
        return self.similarity(batch).mixed(batch.positives)


class GeometricLabeler(VectorLabeler):
    """The inner product of candidate and positive alone, scaled as `params` says: evidence with lambda = 1."""

    name = "geometric"

    def similarities(self, batch: JudgedBatch) -> np.ndarray:
        return self.similarity(batch).geometric(batch.positives)


class JaccardLabeler(VectorLabeler):
    """The Jaccard similarity J of candidate and positive alone (paper 000, eq. 11): evidence with lambda = 0."""

    name = "jaccard"

    def similarities(self, batch: JudgedBatch) -> np.ndarray:
        return self.similarity(batch).jaccard(batch.positives)


class QueryLabeler(VectorLabeler):
    """The inner product of candidate and query, transformed as the scores of evidence are (paper 000, Section 5.2).

    It is the same for every positive; grades weigh it as they weigh evidence. The control that distils the encoder into
    itself.
    """

    name = "query"
    of_documents = False

    def similarities(self, batch: JudgedBatch) -> np.ndarray:
        near = self.similarity(batch).geometric(np.zeros(1, dtype=np.int64))
        return np.broadcast_to(near, (len(near), batch.grades.shape[1], near.shape[2]))


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


class HardLabeler(Labeler):
    """The positives share all probability: the softmax of their grades (paper 001, eq. 3), alike where those are equal.

    Needs no vectors, and takes no label parameters.
    """

    name = "hard"

    def describe(self) -> dict[str, Any]:
        return {"method": self.name, "relevant": self.relevant}

    def labelled(self, contexts: Sequence[JudgedContext]) -> Labelled:
        """The grades of the positives, which come first, as scores, and their softmax; see `Labeler.labelled`."""
        for index, one in enumerate(contexts):
            yield index, one.grades.astype(np.float32), targets.of_grades(one.grades).astype(np.float32)


@dataclass(frozen=True)
class RunLabelParams(Params):
    """Settings of labels by a run."""

    context: int = context_setting()


class RunLabeler(ContextLabeler):
    """The scores of the run itself, the same for every positive, transformed as those of evidence are.

    So a query encoder learns from whatever made the run: first stages fused, a reranker, scores of a model that was run
    elsewhere. A positive that the run does not have gets the lowest score of its context, before grades count.
    """

    name = "run"
    Params = RunLabelParams

    def scores(self, one: JudgedContext) -> np.ndarray:
        """(n,) float64: those of the run."""
        return one.scores
