"""What a model that is trained on single texts tells its trainer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rnnreranker.train.learner import Learner
from rnnreranker.train.params import TextParams
from rnnreranker.train.trainer import LossTrainer
from rnnreranker.train.validation import Validation

if TYPE_CHECKING:
    import numpy as np
    import torch


class TextLearner(Learner):
    """A model and how it learns from texts.

    Args:
        encoder: what it begins as, None = from nothing; params: of the training.
        made, content: see `Learner`.

    Attributes:
        training: what batches are made of, one a text.
    """

    trainer = LossTrainer
    unit = "texts"
    training: Sequence[Any]

    def __init__(self, encoder: str | None, params: TextParams, made: Mapping[str, Any], content: str) -> None:
        self.encoder, self.params, self.made, self.content = encoder, params, made, [content]
        self.settings = params.to_dict()

    @abstractmethod
    def batch(self, several: Sequence[Any]) -> dict[str, Any]:
        """The inputs of several texts."""

    @abstractmethod
    def loss(self, inputs: dict[str, Any], rng: np.random.Generator, step: int) -> torch.Tensor:
        """The mean loss of a batch; what is drawn at random comes from `rng`."""

    @abstractmethod
    def measures(self) -> dict[str, float]:
        """Of the validation texts, "loss" among them."""

    def data(self) -> dict[str, Any]:
        unread = self.training[:1]  # validation has its own texts
        return {"train_dataset": self.training, "eval_dataset": unread, "data_collator": self.batch}

    def size(self, inputs: Mapping[str, Any]) -> int:
        return len(inputs["tokens"])

    def validation(self) -> Validation:
        return Validation(self.measures())

    def record(self, model: str, device: str, threads: int) -> dict[str, Any]:
        """As of every model, without the setting `loss`, which means nothing here."""
        params = {name: value for name, value in self.settings.items() if name != "loss"}
        made = {**self.made, "training_texts": len(self.training)}
        return {"model": model, "params": params, "encoder": self.encoder, **made, "threads": threads, "device": device}
