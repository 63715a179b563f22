"""The model dual: an encoder of queries and of documents to vectors, compared by their cosine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rnnreranker.base import settings
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find
from rnnreranker.train.dual.params import DualParams
from rnnreranker.train.losses.base import CosineLoss
from rnnreranker.train.models.base import GroupModel, TrainedModel

if TYPE_CHECKING:
    from rnnreranker.train.group.inputs import GroupInputs
    from rnnreranker.train.group.learner import Learner
    from rnnreranker.train.losses.base import Loss


class Dual(GroupModel):
    """A dual encoder (paper 004, Section 3.4): one or two towers, mean pooling, vectors of length 1."""

    name = "dual"
    trains = "encoder"
    Params: ClassVar[type[settings.Params]] = DualParams
    cosines = True

    def check(self, params: DualParams) -> None:
        """As of every model, and that no temperature is given to a loss of the cosines themselves."""
        if params.of_batch:
            TrainedModel.check(self, params)
        else:
            super().check(params)
        if params.inverse_temperature is not None and issubclass(find("loss", params.loss), CosineLoss):
            raise InputError(
                f"inverse_temperature={params.inverse_temperature:g}: expected none with the loss {params.loss}, which "
                "is of the cosines themselves"
            )

    def learner(self, encoder: str, params: Any, loss: Loss, inputs: GroupInputs, device: str) -> Learner:
        """See `train.dual_learner`."""
        from rnnreranker.train.dual.learner import DualLearner

        return DualLearner(encoder, params, loss, inputs, device)
