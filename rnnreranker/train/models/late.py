"""The model late: a late-interaction encoder, a vector for every token."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

from rnnreranker.base import settings
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find
from rnnreranker.train.late.params import LateParams
from rnnreranker.train.losses.base import BatchLoss
from rnnreranker.train.models.base import GroupModel, TrainedModel

if TYPE_CHECKING:
    from rnnreranker.train.group.inputs import GroupInputs
    from rnnreranker.train.group.learner import Learner
    from rnnreranker.train.losses.base import Loss
    from rnnreranker.train.request import TrainRequest


class Late(GroupModel):
    """A late-interaction encoder (ColBERT), from one or from any transformer, whose tokens are then projected."""

    name = "late"
    trains = "late-encoder"
    Params: ClassVar[type[settings.Params]] = LateParams
    part = "tokens"

    def check(self, params: LateParams) -> None:
        """As of every model, and that nothing is added to a loss that is it already."""
        if params.in_batch_negatives:
            TrainedModel.check(self, params)
        else:
            super().check(params)
        if params.contrast and issubclass(find("loss", params.loss), BatchLoss):
            raise InputError(
                f"contrast={params.contrast}: expected 0 with the loss {params.loss}, which is over the whole batch "
                "itself"
            )
        if params.batch_teacher and not params.in_batch_negatives:
            raise InputError("batch_teacher=True: expected with in_batch_negatives, whose documents it is asked about")

    def inputs(self, request: TrainRequest, params: LateParams) -> GroupInputs:
        """As of every model, and the teacher of the labels where it is asked about the documents of a batch."""
        inputs = super().inputs(request, params)
        if not params.batch_teacher:
            return inputs
        from rnnreranker.index.opening import open_index
        from rnnreranker.train.group.batch_teacher import teacher_of

        if request.labels is None or request.index is None:
            labels, index = argument("labels"), argument("index")
            raise InputError(f"batch_teacher: needs {labels}, and {index} with the tokens that they were made from")
        opened = open_index(request.index, needs={"tokens"})
        topics = {pool.qid: inputs.queries[pool.qid] for pool in inputs.pools}
        return dataclasses.replace(inputs, teacher=teacher_of(inputs.made["labels"], opened, topics))

    def learner(self, encoder: str, params: Any, loss: Loss, inputs: GroupInputs, device: str) -> Learner:
        """See `train.late_learner`."""
        from rnnreranker.train.late.learner import LateLearner

        return LateLearner(encoder, params, loss, inputs, device)
