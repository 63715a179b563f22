"""What any model tells `fit` and its trainer: what is trained, on what, how it is validated and written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import transformers

from rnnreranker.encode.model_folder import content_of

if TYPE_CHECKING:
    from rnnreranker.train.validation import Validation


class Learner(ABC):
    """A model and how it learns.

    Attributes:
        trainer: the class that trains such models: transformers' or one of sentence-transformers; arguments: the class
            of its arguments.
        unit: what is counted of a batch.
        small_checkpoints: whether they hold weights alone; validates_last: whether the last step is validated, too.
        model: what is trained; folder: where it came from, None where it begins from nothing.
        encoder: the name of that; settings: of the training, and of its loss.
        made: what the record says of the inputs; content: what is learnt from, for the fingerprint of checkpoints.
        callbacks: of the trainer, besides those that every training has.
        kept: what a resumed training needs besides the weights, with `save` to a checkpoint and `load`; None = nothing.
    """

    trainer: ClassVar[type[Any]]
    arguments: ClassVar[type[Any]] = transformers.TrainingArguments
    unit: ClassVar[str] = "queries"
    small_checkpoints: ClassVar[bool] = True
    validates_last: ClassVar[bool] = True
    model: Any
    folder: Path | None
    encoder: str | None
    settings: Mapping[str, Any]
    made: Mapping[str, Any]
    content: Sequence[Any]
    callbacks: Sequence[transformers.TrainerCallback] = ()
    kept: Any = None

    @abstractmethod
    def data(self) -> dict[str, Any]:
        """The arguments of the trainer that say what it reads, and how."""

    @abstractmethod
    def size(self, inputs: Mapping[str, Any]) -> int:
        """How many of `unit` a batch has."""

    @abstractmethod
    def validation(self) -> Validation:
        """The validation of the weights as they are, which are in the mode of evaluation."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the model into a folder that is there."""

    def steps(self, params: Any, checkpoints: bool) -> dict[str, Any]:
        """Arguments of the trainer besides those of every training: how the learning rate goes, when it validates."""
        kind = "linear" if params.decay else "constant_with_warmup"
        return {"weight_decay": params.weight_decay, "warmup_steps": params.warmup, "lr_scheduler_type": kind}

    def beside(self) -> dict[str, float]:
        """What validations and the record say of the weights as they are, besides the measures."""
        return {}

    def identity(self, model: str, device: str, threads: int) -> list[Any]:
        """What a checkpoint belongs to; model: the name of the kind of model."""
        begins = content_of(self.folder) if self.folder else ""
        return [model, self.settings, begins, device, threads, *self.content]

    def record(self, model: str, device: str, threads: int) -> dict[str, Any]:
        """What `training.json` says first."""
        of_machine = {"threads": threads, "device": device}
        return {"model": model, "params": self.settings, "encoder": self.encoder, **self.made, **of_machine}
