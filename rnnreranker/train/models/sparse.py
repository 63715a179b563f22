"""The model sparse: an encoder of texts to weights of words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rnnreranker.base import settings
from rnnreranker.base.errors import InputError
from rnnreranker.train.models.base import GroupModel
from rnnreranker.train.sparse.params import SparseParams

if TYPE_CHECKING:
    from rnnreranker.train.group.inputs import GroupInputs
    from rnnreranker.train.group.learner import Learner
    from rnnreranker.train.losses.base import Loss


class Sparse(GroupModel):
    """A sparse encoder: SPLADE-max, or SPLADE-doc, from any masked-language model."""

    name = "sparse"
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

    def learner(self, encoder: str, params: Any, loss: Loss, inputs: GroupInputs, device: str) -> Learner:
        """See `train.sparse_learner`."""
        from rnnreranker.train.sparse.learner import SparseLearner

        return SparseLearner(encoder, params, loss, inputs, device)
