"""The simple labelers: judgements, a run, and similarities to positives or the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.labels import targets
from rnnreranker.labels.judged import JudgedBatch, JudgedContext
from rnnreranker.labels.methods.base import ContextLabeler, Labeler, Labelled, Source, VectorLabeler
from rnnreranker.labels.similarity import Asked, GraphSimilarity, Similarity
from rnnreranker.methods.rerank.base import inner_products
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import VECTORS_ALONE


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

    This control distils the encoder into itself. Grades weigh it as they weigh evidence.
    """

    name = "query"
    of_documents = False

    def similarities(self, batch: JudgedBatch) -> np.ndarray:
        near = self.similarity(batch).geometric(np.zeros(1, dtype=np.int64))
        return np.broadcast_to(near, (len(near), batch.grades.shape[1], near.shape[2]))


class UniformLabeler(VectorLabeler):
    """Hard labels with a share for the other candidates, all alike (paper 000, eq. 2).

    The share is that of evidence with the same parameters (Section 5.2), or with `mass` "own" that of their number.
    """

    name = "uniform"

    @property
    def takes_mass(self) -> bool:
        return self.label_params.mass in (None, "evidence")

    def similarities(self, batch: JudgedBatch) -> np.ndarray:
        return np.zeros((*batch.grades.shape, batch.real.shape[1]), dtype=np.float32)

    def own_targets(self, batch: JudgedBatch, similarities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores, the grades, and targets: hard labels times their number and 1 for other candidates, normalised."""
        positives = batch.grades.shape[1]
        scores = np.zeros(batch.real.shape)
        scores[:, :positives] = batch.grades
        mass = batch.real.astype(np.float64)
        mass[:, :positives] *= positives * targets.of_grades(batch.grades)
        share = mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-12)
        return np.where(batch.real, scores, -np.inf).astype(np.float32), share.astype(np.float32)


class HardLabeler(Labeler):
    """The positives share all probability: the softmax of their grades (paper 001, eq. 3).

    It needs no vectors, and takes no label parameters.
    """

    name = "hard"

    def describe(self) -> dict[str, Any]:
        return {"method": self.name, "relevant": self.relevant}

    def labelled(self, contexts: Sequence[JudgedContext]) -> Labelled:
        for index, one in enumerate(contexts):
            yield index, one.grades.astype(np.float32), targets.of_grades(one.grades).astype(np.float32)


@dataclass(frozen=True)
class RunLabelParams(Params):
    context: int = context_setting()


class RunLabeler(ContextLabeler):
    """The scores of the run itself, the same for every positive, transformed as those of evidence are.

    A positive that the run lacks gets the lowest score of its context, before grades count.
    """

    name = "run"
    Params = RunLabelParams

    def scores(self, one: JudgedContext) -> np.ndarray:
        return one.scores


@dataclass(frozen=True)
class JointParams(RnnParams):
    """Settings of joint labels.

    `queries`: similarities of query and candidates with a graph: "encoded" vectors, the "run"'s scores, or "none".
    """

    positive_weight: float = setting(
        0.5, "a: weight of similarity to a positive; 1 - a of similarity to the query", at_least=0, at_most=1
    )
    queries: Literal["encoded", "run", "none"] = setting(
        "none",
        "with --from neighbours, what is known of query and candidates: products of vectors, the run's scores, or no "
        "more than the run's order and scores",
        tunable=False,
    )


JointParams.presets = {name: JointParams(**params.to_dict()) for name, params in RnnParams.presets.items()}


class JointLabeler(VectorLabeler):
    """a s*(l, c) + (1 - a) s*(q, c) of candidate c, positive l and query q; s* = lambda s + (1 - lambda) J."""

    name = "joint"
    Params = JointParams
    defaults = JointParams(**VECTORS_ALONE)
    params: JointParams

    @classmethod
    def needs_from(cls, source: Source, params: Any) -> frozenset[str]:
        needs = super().needs_from(source, params)
        if source == "neighbours" and params.queries == "encoded":
            return needs | cls.needs
        if source == "vectors" and params.queries != "none":
            raise InputError(f"queries={params.queries}: of labels from neighbours; with vectors the query has one too")
        return needs

    def similarities(self, batch: JudgedBatch) -> np.ndarray:
        return self.similarity(batch).joint(batch.positives, self.params.positive_weight)

    def similarity(self, batch: JudgedBatch) -> Similarity:
        if self.source == "vectors":
            return super().similarity(batch)
        products = {
            "encoded": lambda: _products(batch),
            "run": lambda: np.where(batch.real, batch.scores, 0.0),
            "none": lambda: None,
        }[self.params.queries]()
        asked = Asked(batch.ranks, batch.scores, products)
        return GraphSimilarity(batch.lengths, self.params, self.threads, self.inputs.neighbours, batch.rows, asked)


def _products(batch: JudgedBatch) -> np.ndarray:
    """(B, N) float64: inner products of query and candidates, 0 at padding."""
    products = np.zeros(batch.real.shape)
    for row, length in enumerate(batch.lengths.tolist()):
        products[row, :length] = inner_products(batch.vectors[row, 0], batch.vectors[row, 1 : length + 1])
    return products
