"""Joint labels: what is like a positive and like the query too is likely relevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import setting
from rnnreranker.labels.graph_similarity import Asked, GraphSimilarity
from rnnreranker.labels.judged import JudgedBatch
from rnnreranker.labels.methods.base import Source, VectorLabeler
from rnnreranker.labels.similarity import Similarity
from rnnreranker.methods.rerank.base import inner_products
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import VECTORS_ALONE


@dataclass(frozen=True)
class JointParams(RnnParams):
    """Settings of joint labels: those of the similarity, and how much its two ends count.

    - `positive_weight`: a, the weight of similarity to a positive; 1 - a is that of similarity to the query.
    - `queries`: with a graph in place of vectors, where similarities of query and candidate come from, as of
      `RnnReranker`. "encoded": inner products of query vectors and vectors; "run": the run's scores are these products,
      as those of dense retrieval with the vectors of the graph; "none": they are not known.
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
    """a s*(l, c) + (1 - a) s*(q, c) of candidate c, positive l and query q; s* = lambda s + (1 - lambda) J.

    So inner products and reciprocal neighbours in common are asked of both ends, in one pass over a context.
    """

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
        """Of the candidates of a batch to its elements, the query among them."""
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
    """(B, N) float64: inner products of query and candidates, 0 for padding."""
    products = np.zeros(batch.real.shape)
    for row, length in enumerate(batch.lengths.tolist()):
        products[row, :length] = inner_products(batch.vectors[row, 0], batch.vectors[row, 1 : length + 1])
    return products
