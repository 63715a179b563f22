"""The model sparse: an encoder of texts to weights of words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from rnnreranker.base import settings
from rnnreranker.base.errors import InputError
from rnnreranker.base.setting_order import in_order
from rnnreranker.base.settings import setting
from rnnreranker.train.models.base import GroupModel
from rnnreranker.train.params import OneLengthParams


@in_order
@dataclass(frozen=True)
class SparseParams(OneLengthParams):
    """How a sparse encoder is trained; the presets have the values of published SPLADE models."""

    loss: str = "info-nce"
    group_size: int = 2
    batch_size: int = 32
    epochs: float = 3.0
    learning_rate: float = 2e-5
    architecture: Literal["max", "doc"] = setting(
        "max", "SPLADE-max, or SPLADE-doc, whose queries are their words, without a model", tunable=False
    )
    query_weights: Literal["binary", "counts"] = setting(
        "binary",
        "weights of a query's words in SPLADE-doc: 1 each, as in the authors' program, or their counts; search alike",
        tunable=False,
    )
    lambda_q: float = setting(3e-4, "weight of the regularisation of queries; doc has none", at_least=0)
    lambda_d: float = setting(1e-4, "weight of the FLOPS of documents", at_least=0)
    query_regularizer: Literal["flops", "l1"] = setting("flops", "regularizer of queries", tunable=False)
    regularizer_warmup: float = setting(
        1 / 3, "steps of quadratic warm-up of the regularisation; below 1 a share of all steps", at_least=0
    )


_SPLADE = SparseParams(  # Formal et al. (2021, 2022) and the settings files of their program
    batch_size=128,
    max_steps=150000,
    warmup=6000.0,
    max_length=256,
    regularizer_warmup=50000.0,
    seed=123,
)
SparseParams.presets = {
    "splade-max": _SPLADE,
    "splade-doc": replace(_SPLADE, architecture="doc"),
    "splade-distil": replace(_SPLADE, loss="margin-mse", lambda_q=0.5, lambda_d=0.4),
}


class Sparse(GroupModel):
    """A sparse encoder: SPLADE-max, or SPLADE-doc, from any masked-language model."""

    name = "sparse"
    learns = "rnnreranker.train.group.sparse:SparseLearner"
    trains = "sparse-encoder"
    Params: ClassVar[type[settings.Params]] = SparseParams
    part = "impact"

    def check(self, params: SparseParams) -> None:
        """As of every model, and that nothing is said of weights of queries that the architecture does not have."""
        super().check(params)
        if params.architecture == "doc" and params.query_regularizer != "flops":
            raise InputError(
                f"query_regularizer={params.query_regularizer}: expected none with the architecture doc, whose "
                "queries are their words, which no training changes"
            )
        if params.architecture == "max" and params.query_weights != "binary":
            raise InputError(
                f"query_weights={params.query_weights}: expected none with the architecture max, whose queries the "
                "model weighs; it is for doc"
            )
