"""The model late: a late-interaction encoder, a vector for every token."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rnnreranker.base import settings
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find
from rnnreranker.base.setting_order import in_order
from rnnreranker.base.settings import setting
from rnnreranker.train.losses import BatchLoss
from rnnreranker.train.models.base import GroupModel
from rnnreranker.train.params import GroupParams, in_batch_setting

if TYPE_CHECKING:
    from rnnreranker.train.group.inputs import GroupInputs
    from rnnreranker.train.request import TrainRequest


@in_order
@dataclass(frozen=True)
class LateParams(GroupParams):
    """How a late-interaction encoder is trained; the presets have the values of paper 002 and of its program."""

    loss: str = "info-nce"
    group_size: int = 2
    batch_size: int = 32
    epochs: float = 3.0
    similarity: Literal["maxsim", "l2"] = setting(
        "maxsim",
        "similarity in the loss: inner products, or minus squared distances, never below that to zeros",
        tunable=False,
    )
    in_batch_negatives: bool = in_batch_setting()
    batch_teacher: bool = setting(
        False,
        "with in-batch negatives, the teacher that made the labels scores all documents of a batch, by the tokens of "
        "the index; no = a document has what the labels give it, 0 where they do not know it",
        tunable=False,
    )
    contrast: float = setting(0.0, "weight of info-nce over the whole batch, added to the loss", at_least=0)
    query_length: int | None = setting(
        None, "tokens at which queries are cut, and to which they are expanded; none = the model's own", at_least=1
    )
    document_length: int | None = setting(None, "tokens at which documents are cut; none = the model's own", at_least=1)
    dimension: int | None = setting(
        None, "numbers of a token, where the training begins with a transformer; none = 128", at_least=1
    )

    of_loss: ClassVar[Mapping[str, Mapping[str, Any]]] = {"collective": {"raise_positives": True}}


_COLBERT = LateParams(  # paper 002's program; Section 2.1: 128 numbers a token; 18 of a batch on each of two GPUs
    similarity="l2",
    depth=1000,
    batch_size=36,
    max_steps=400000,
    learning_rate=3e-6,
    weight_decay=0.0,
    warmup=0.0,
    decay=False,
    clip=2.0,
    query_length=32,
    document_length=180,
    dimension=128,
    seed=12345,
)
_STUDENT = replace(_COLBERT, max_steps=600000)  # the published weights are those of step 150,000
LateParams.presets = {
    "colbert": _COLBERT,
    "colbert-hn": replace(_STUDENT, depth=100),
    "colbert-ce": replace(_STUDENT, loss="kl"),  # its script: --kd_temperature 0.25 --dual_supervision_lambda 0.0
    "collective": replace(_STUDENT, loss="kl", in_batch_negatives=True, batch_teacher=True, depth=100),
}


class Late(GroupModel):
    """A late-interaction encoder (ColBERT), from one or from any transformer, whose tokens are then projected."""

    name = "late"
    learns = "rnnreranker.train.group.late:LateLearner"
    trains = "late-encoder"
    Params: ClassVar[type[settings.Params]] = LateParams
    part = "tokens"

    def check(self, params: LateParams) -> None:
        """As of every model, and that nothing is added to a loss that is it already."""
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
