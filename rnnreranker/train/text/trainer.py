"""The Trainer of transformers over single texts: what a learner computes, validation, small checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import transformers

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import ParameterError
from rnnreranker.base.process import phases
from rnnreranker.train.best import AtTheEnd, Best
from rnnreranker.train.checkpoints import training_arguments
from rnnreranker.train.small_checkpoints import SmallCheckpoints
from rnnreranker.train.text.params import TextParams


class TextLearner(Protocol):
    """A model and how it learns from texts.

    Attributes:
        model: what is trained; folder: of the model that it begins as, None where it begins from nothing.
        training: what batches are made of, one a text.
        measured: the names of `measures`.
    """

    model: Any
    folder: Any
    training: Any
    measured: Any

    def batch(self, several: Sequence[Any]) -> dict[str, Any]:
        """The inputs of several texts."""
        ...

    def loss(self, inputs: dict[str, Any], rng: np.random.Generator) -> torch.Tensor:
        """The mean loss of a batch; what is drawn at random comes from `rng`."""
        ...

    def measures(self) -> dict[str, float]:
        """Of the validation texts, "loss" among them."""
        ...

    def save(self, folder: Path) -> None:
        """Write the model into a folder that is there."""
        ...


class TextTrainer(SmallCheckpoints, transformers.Trainer):
    """Trains a `TextLearner`; what is drawn depends on seed, step and pass alone: a resumed training draws the same."""

    def __init__(self, learner: TextLearner, params: TextParams, arguments: transformers.TrainingArguments) -> None:
        self.learner, self.encoder, self.params = learner, learner.model, params
        self.best = Best(self)
        self.texts_seen, self.seconds_aside = 0, 0.0  # trained on; spent on validations and checkpoints
        self._pass = (-1, 0)
        super().__init__(
            model=learner.model,
            args=arguments,
            data_collator=learner.batch,
            train_dataset=learner.training,
            eval_dataset=learner.training[:1],  # not read: `evaluate` has its own texts
            callbacks=[AtTheEnd(), self.best],
        )
        self.model_accepts_loss_kwargs = False  # the loss is a mean: passes are averaged before a step
        self.remove_callback(transformers.PrinterCallback)
        self.remove_callback(transformers.ProgressCallback)

    def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, return_outputs: bool = False, **__: Any) -> Any:
        """The loss of one pass, which must be a number."""
        step = int(self.state.global_step)
        phases.tell(f"step {step + 1} of {self.state.max_steps}")
        self._pass = (step, self._pass[1] + 1 if self._pass[0] == step else 0)
        self.texts_seen += len(inputs["tokens"])
        loss = self.learner.loss(inputs, np.random.default_rng([self.params.seed, *self._pass]))
        if not torch.isfinite(loss):
            raise ParameterError(f"step {step}: the loss is {loss.item()}; try a lower {argument('learning_rate')}")
        return (loss, {}) if return_outputs else loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Validate, and log."""
        was_training = self.encoder.training
        self.encoder.eval()
        with torch.no_grad():
            metrics = {f"eval_{name}": value for name, value in self.learner.measures().items()}
        self.encoder.train(was_training)
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


def text_trainer(learner: TextLearner, params: TextParams, folder: Path, checkpoints: bool, device: str) -> TextTrainer:
    """The trainer of a learner; folder: of checkpoints; checkpoints: whether they are written; device: cpu or cuda."""
    arguments = transformers.TrainingArguments(
        **training_arguments(params, folder, checkpoints, device),
        weight_decay=params.weight_decay,
        warmup_steps=params.warmup,
        lr_scheduler_type="linear" if params.decay else "constant_with_warmup",
    )
    return TextTrainer(learner, params, arguments)
