"""What a kind of model says of its training: its settings, and what it does with a request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from rnnreranker.base import settings
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.method import find
from rnnreranker.train.fit import Trained, fit
from rnnreranker.train.losses import BatchLoss, CosineLoss
from rnnreranker.train.params import GroupParams, TrainingParams

if TYPE_CHECKING:
    from rnnreranker.train.groups import GroupInputs
    from rnnreranker.train.losses import Loss
    from rnnreranker.train.request import TrainRequest


class TrainedModel(ABC):
    """A kind of model that `python -m rnnreranker.train --model NAME` trains."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"topics", "texts"})
    Params: ClassVar[type[settings.Params]]  # a subclass of TrainingParams
    reads: ClassVar[frozenset[str]] = frozenset()  # arguments, but for the common ones, that mean something to it
    part: ClassVar[str] = "dense"  # of an index, whose encoder a training begins with where none is given
    trains: ClassVar[str] = ""  # kind of encoder that comes out; "" = what no part is made by
    encoder_settings: ClassVar[frozenset[str]] = frozenset()  # of `EncoderParams`, that its training takes
    cosines: ClassVar[bool] = False  # its scores are cosines, where a loss asks for such

    def check(self, params: Any) -> None:
        """Refuse settings that do not go together, before anything is read.

        Raises:
            InputError: a loss of cosines for a model with other scores.
        """
        if issubclass(find("loss", params.loss), CosineLoss) and not self.cosines:
            raise InputError(
                f"loss={params.loss}: expected another with {argument('model', self.name)}; it is of cosines, for "
                f"{argument('model', 'dual')}"
            )

    @abstractmethod
    def train(self, request: TrainRequest, params: TrainingParams, loss: settings.Params, device: str) -> Trained:
        """Train as a request asks for, and write the folder `request.output`.

        Args:
            request: what is read, and where to write.
            params: of the model's training; loss: those of the loss that they name.
            device: cpu or cuda.
        """


class SingleTextModel(TrainedModel):
    """A model that is trained on texts one by one, with a loss of its own and validation texts that it holds out."""

    without: ClassVar[frozenset[str]] = frozenset({"loss"})

    def refuse(self, request: TrainRequest, loss: settings.Params) -> None:
        """Refuse what means nothing to such a training; InputError: validation queries, or parameters of a loss."""
        names = [field.name for field in fields(request) if field.name.startswith("validation_")]
        if given := [argument(name) for name in names if getattr(request, name) is not None]:
            model = argument("model", self.name)
            raise InputError(f"{given[0]}: not for {model}, which holds out a share, {model}:validation_share=…")
        if loss != type(loss)():
            raise InputError(f"parameters of a loss: not for {argument('model', self.name)}, which has its own")


class GroupModel(TrainedModel):
    """A model that is trained on groups of texts: a subclass writes `learner`."""

    reads = frozenset({"negatives", "documents", "fields"})

    def train(self, request: TrainRequest, params: TrainingParams, loss: settings.Params, device: str) -> Trained:
        assert isinstance(params, GroupParams)
        self.check(params)
        inputs = self.inputs(request, params)
        how: dict[str, Any] = {"checkpoints": request.checkpoints, "device": device}
        return self.train_on(inputs, request.start.name, request.output, params, loss, **how)

    def train_on(
        self,
        inputs: GroupInputs,
        encoder: str,
        output: Any,
        params: Any,
        loss: Any = None,
        device: str = "cpu",
        **how: Any,
    ) -> Trained:
        """Train on inputs that were read.

        Raises:
            InputError: a model that cannot be trained so, a loss without the targets it needs, and as `fit`.
            MissingDependencyError: without sentence-transformers or accelerate.
        """
        ranking = find("loss", params.loss)(loss)
        if "teacher" in ranking.needs and not inputs.margins:
            raise InputError(
                f"loss {params.loss}: needs targets of the negatives, and the candidates have none; give "
                f"{argument('labels')} of a method that gives them probability, as `labels --method teacher`"
            )
        require("sentence_transformers", "training", "'rnnreranker[train]'")
        return fit(
            lambda: self.learner(encoder, params, ranking, inputs, device),
            self.name,
            output,
            params,
            device=device,
            **how,
        )

    def inputs(self, request: TrainRequest, params: Any) -> GroupInputs:
        """What a request names.

        Raises:
            InputError: as `load_groups`.
        """
        from rnnreranker.train.groups import load_groups

        return load_groups(request, params)

    def check(self, params: Any) -> None:
        """As of every model, and that there is a negative for a loss that has no others."""
        super().check(params)
        if params.group_size < 2 and not params.of_batch and not issubclass(find("loss", params.loss), BatchLoss):
            raise InputError(
                f"group_size={params.group_size}: expected an integer >= 2, as the loss {params.loss} compares a "
                "positive with the negatives of its group"
            )

    @abstractmethod
    def learner(self, encoder: str, params: Any, ranking: Loss, inputs: GroupInputs, device: str) -> Any:
        """The model to begin with, and how it is trained: a `trainer.Learner`.

        Args:
            encoder: a name, folder or hub id.
            params: of the training; ranking: the loss that it lowers.
            inputs: texts, and candidates of the validation queries.
            device: cpu or cuda.

        Raises:
            InputError: a model that cannot be trained so.
        """
