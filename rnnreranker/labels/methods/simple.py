"""The simple labelers: judgements, a run, and similarities to positives or the query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.labels import targets
from rnnreranker.labels.methods.base import ContextLabeler, JudgedContext, Labeler, Pair, Source, VectorLabeler
from rnnreranker.labels.similarity import Asked, Similarity, padded
from rnnreranker.parts.vectors.exact import inner_products
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import VECTORS_ALONE


class EvidenceLabeler(VectorLabeler):
    """s* = lambda s + (1 - lambda) J of candidate and positive (paper 000, Algorithm 1)."""

    name = "evidence"
    by = "mixed"
    takes_mass = False  # its own mass is meant


class GeometricLabeler(VectorLabeler):
    """The inner product of candidate and positive alone, scaled as `params` says: evidence with lambda = 1."""

    name = "geometric"
    by = "geometric"


class JaccardLabeler(VectorLabeler):
    """The Jaccard similarity J of candidate and positive alone (paper 000, eq. 11): evidence with lambda = 0."""

    name = "jaccard"
    by = "jaccard"


class QueryLabeler(VectorLabeler):
    """The inner product of candidate and query, transformed as the scores of evidence are (paper 000, Section 5.2).

    This control distils the encoder into itself. Grades weigh it as they weigh evidence.
    """

    name = "query"
    of_documents = False

    def similarities(self, near: Similarity, positives: np.ndarray) -> np.ndarray:
        return near.geometric(np.zeros(1, dtype=np.int64)).repeat(len(positives), axis=1)


class UniformLabeler(VectorLabeler):
    """Hard labels with a share for the other candidates, all alike (paper 000, eq. 2).

    The share is that of evidence with the same parameters (Section 5.2), or with `mass` "own" that of their number.
    """

    name = "uniform"
    alike = True

    @property
    def takes_mass(self) -> bool:
        return self.label_params.mass in (None, "evidence")

    def similarities(self, near: Similarity, positives: np.ndarray) -> np.ndarray:
        return np.zeros((len(near.lengths), len(positives), near.lengths.max()), dtype=np.float32)

    def own_targets(self, grades: np.ndarray, similarities: np.ndarray) -> Pair:
        """Scores, the grades, and targets: hard labels times their number and 1 for other candidates, normalised."""
        others = np.zeros(similarities.shape[1] - len(grades))
        mass = np.append(len(grades) * targets.of_grades(grades), others + 1.0)
        return np.append(grades, others).astype(np.float32), (mass / mass.sum()).astype(np.float32)


class HardLabeler(Labeler):
    """The positives share all probability: the softmax of their grades (paper 001, eq. 3).

    It needs no vectors, and takes no label parameters.
    """

    name = "hard"
    Beside = Params

    def describe(self) -> dict[str, Any]:
        return {"method": self.name}

    def labelled(self, contexts: Sequence[JudgedContext]) -> Iterator[tuple[int, Pair]]:
        for number, one in enumerate(contexts):
            yield number, (one.grades.astype(np.float32), targets.of_grades(one.grades).astype(np.float32))


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

    def similarities(self, near: Similarity, positives: np.ndarray) -> np.ndarray:
        return near.joint(positives, self.params.positive_weight)

    def asked(self, contexts: Sequence[JudgedContext]) -> Asked:
        scores, products = padded([one.scores for one in contexts]), None
        if self.params.queries == "encoded":
            vectors = self.inputs.vectors
            for one in contexts:
                if (vectors.rows(one.docids[: one.size]) != one.rows).any():
                    raise InputError(f"query {one.qid}: docids have other rows in the graph than in the vectors")
            products = padded([inner_products(self.of_query[one.qid], vectors.fetch(one.rows)) for one in contexts])
        elif self.params.queries == "run":
            products = scores
        return Asked(padded([one.ranks for one in contexts], np.iinfo(np.int64).max), scores, products)
