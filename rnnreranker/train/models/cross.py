"""The model cross: a cross-encoder, which reads a query and a document together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rnnreranker.base import settings
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find
from rnnreranker.base.setting_order import in_order
from rnnreranker.train.losses import BatchLoss
from rnnreranker.train.models.base import GroupModel
from rnnreranker.train.params import OneLengthParams


@in_order
@dataclass(frozen=True)
class CrossParams(OneLengthParams):
    """How a cross-encoder is trained; the presets have the values of published rerankers."""


CrossParams.presets = {
    # the program that LCE was published with (Gao, Dai and Callan, 2021): 7 of the negatives of the first 100
    "lce": CrossParams(max_length=512),
}


class Cross(GroupModel):
    """A cross-encoder: one score for a query and a document read together, from any encoder with a new head."""

    name = "cross"
    learns = "rnnreranker.train.group.cross:CrossLearner"
    trains = "cross-encoder"
    Params: ClassVar[type[settings.Params]] = CrossParams

    def check(self, params: CrossParams) -> None:
        """As of every model, and that the loss asks for no other query's candidates."""
        super().check(params)
        if issubclass(find("loss", params.loss), BatchLoss):
            raise InputError(
                f"loss {params.loss}: takes the candidates of other queries, with which a cross-encoder would have to "
                f"read every query; give {argument('loss', 'lce')}"
            )
