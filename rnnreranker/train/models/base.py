"""What a kind of model says of its training: its settings, and what it does with the arguments of the command."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from rnnreranker.base import settings
from rnnreranker.base.errors import InputError
from rnnreranker.train.group.params import GroupParams
from rnnreranker.train.params import TrainingParams

if TYPE_CHECKING:
    from rnnreranker.train.group.inputs import GroupInputs
    from rnnreranker.train.group.learner import Learner
    from rnnreranker.train.losses.base import Loss
    from rnnreranker.train.query.training import Trained


class TrainedModel(ABC):
    """A kind of model that `python -m rnnreranker.train --model NAME` trains."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"topics", "texts"})
    Params: ClassVar[type[settings.Params]]  # a subclass of TrainingParams
    flags: ClassVar[frozenset[str]] = frozenset()  # arguments of the command, but for the common ones, that it reads
    cosines: ClassVar[bool] = False  # its scores are cosines, where a loss asks for such

    def check(self, params: Any) -> None:
        """Refuse settings that do not go together, before anything is read.

        Raises:
            InputError: a loss of cosines for a model with other scores.
        """
        from rnnreranker.base.method import find

        if find("loss", params.loss).of_cosines and not self.cosines:
            raise InputError(
                f"loss={params.loss}: expected another with --model {self.name}; it is of cosines, for --model dual"
            )

    @abstractmethod
    def train(self, args: argparse.Namespace, params: TrainingParams, loss: settings.Params, device: str) -> Trained:
        """Train with the arguments of the command, and write the folder `args.output`.

        Args:
            args: of the command.
            params: of the model's training; loss: those of the loss that they name.
            device: cpu or cuda.
        """


class TextModel(TrainedModel):
    """A model that is trained on texts one by one, with a loss of its own and validation texts that it holds out."""

    without: ClassVar[frozenset[str]] = frozenset({"loss"})

    def refuse(self, args: argparse.Namespace, loss: settings.Params) -> None:
        """Refuse what means nothing to such a training.

        Raises:
            InputError: validation queries, or parameters of a loss.
        """
        given = [name for name in vars(args) if name.startswith("validation_") and name != "validation_share"]
        if typed := [settings.flag(name) for name in given if getattr(args, name)]:
            raise InputError(f"{typed[0]}: not for --model {self.name}, which holds out a --validation-share")
        if loss != type(loss)():
            raise InputError(f"parameters of a loss: not for --model {self.name}, which has its own")


class GroupModel(TrainedModel):
    """A model that is trained on groups of texts: a subclass writes `learner`."""

    flags = frozenset({"negatives", "documents", "fields"})

    def train(self, args: argparse.Namespace, params: TrainingParams, loss: settings.Params, device: str) -> Trained:
        """Read, train, write."""
        from rnnreranker.train.group.training import train_on_groups

        assert isinstance(params, GroupParams)
        self.check(params)
        found = self.inputs(args, params)
        return train_on_groups(
            found, self.name, args.encoder, args.output, params, loss=loss, checkpoints=args.checkpoints, device=device
        )

    def inputs(self, args: argparse.Namespace, params: Any) -> GroupInputs:
        """What the arguments name.

        Raises:
            InputError: as `load_groups`.
        """
        from rnnreranker.train.group.inputs import load_groups

        return load_groups(args, params)

    def check(self, params: Any) -> None:
        """As of every model, and that there is a negative for a loss that has no others."""
        from rnnreranker.base.method import find

        super().check(params)
        if params.group_size < 2 and not find("loss", params.loss).in_batch:
            raise InputError(
                f"group_size={params.group_size}: expected an integer >= 2, as the loss {params.loss} compares a "
                "positive with the negatives of its group"
            )

    @abstractmethod
    def learner(self, encoder: str, params: Any, loss: Loss, inputs: GroupInputs, device: str) -> Learner:
        """The model to begin with, and how it is trained.

        Args:
            encoder: a name, folder or hub id.
            params: of the training; loss: what it lowers.
            inputs: texts, and candidates of the validation queries.
            device: cpu or cuda.

        Raises:
            InputError: a model that cannot be trained so.
        """
