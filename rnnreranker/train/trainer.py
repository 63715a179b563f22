"""What the trainers of transformers and sentence-transformers do otherwise here, whatever is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import ParameterError
from rnnreranker.base.private.transformers import SecondsAside
from rnnreranker.base.process import phases
from rnnreranker.train.best import AtTheEnd, Best
from rnnreranker.train.checkpoints import training_arguments
from rnnreranker.train.learner import Learner
from rnnreranker.train.validation import Validation

WEIGHTS = "weights.safetensors"  # in a checkpoint: what is trained


class FitTrainer(SecondsAside):
    """Put before a Trainer, see `trainer_of`: looks at the loss, validates as the learner does, keeps the best."""

    def __init__(self, learner: Learner, params: Any, arguments: Any) -> None:
        self.learner, self.params = learner, params
        self.best = Best(self)
        self.validations: dict[int, Validation] = {}  # by step, of this process
        self.seen, self.seconds_aside = 0, 0.0  # trained on; spent on validations and checkpoints
        ended = [AtTheEnd()] if learner.validates_last else []
        callbacks = [*ended, self.best, *learner.callbacks]
        super().__init__(model=learner.model, args=arguments, callbacks=callbacks, **learner.data())  # type: ignore[call-arg]
        for shown in (transformers.PrinterCallback, transformers.ProgressCallback):
            self.remove_callback(shown)  # type: ignore[attr-defined]

    def compute_loss(self, model: Any, inputs: Any, *args: Any, return_outputs: bool = False, **kwargs: Any) -> Any:
        """The loss of one pass, which must be a number."""
        trainer: Any = self
        step = int(trainer.state.global_step)
        phases.tell(f"step {step + 1} of {trainer.state.max_steps}")
        self.seen += self.learner.size(inputs)
        loss = super().compute_loss(model, inputs, *args, **kwargs)  # type: ignore[misc]
        if not torch.isfinite(loss):
            raise ParameterError(f"step {step}: the loss is {loss.item()}; try a lower {argument('learning_rate')}")
        return (loss, {}) if return_outputs else loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Validate, and log."""
        trainer: Any = self
        validation = self.validations[int(trainer.state.global_step)] = self.validation()
        measures = {**validation.measures, **self.learner.beside()}
        metrics = {f"eval_{name}": value for name, value in measures.items()}
        trainer.log(dict(metrics))
        trainer.control = trainer.callback_handler.on_evaluate(trainer.args, trainer.state, trainer.control, metrics)
        return metrics

    def validation(self) -> Validation:
        """The validation of the weights as they are."""
        model = self.learner.model
        was_training = model.training
        model.eval()
        with torch.no_grad():
            validation = self.learner.validation()
        model.train(was_training)
        return validation

    def add_model_card_callback(self, _: Any) -> None:
        """No model card: sentence-transformers' would name the day and the machine."""


class SmallCheckpoints:
    """Put before a Trainer: its checkpoints hold weights alone."""

    learner: Learner

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        assert output_dir is not None
        Path(output_dir).mkdir(parents=True, exist_ok=True)
        weights = {name: value.detach().contiguous() for name, value in self.learner.model.named_parameters()}
        save_file(weights, str(Path(output_dir) / WEIGHTS))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        self.learner.model.load_state_dict(load_file(str(Path(resume_from_checkpoint) / WEIGHTS)), strict=False)


class LossTrainer(transformers.Trainer):
    """Trains a learner by its own `loss`; what is drawn depends on seed, step and pass alone.

    So a resumed training draws the same.
    """

    learner: Any
    params: Any

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.model_accepts_loss_kwargs = False  # the loss is a mean: passes are averaged before a step
        self._pass = (-1, 0)

    def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> torch.Tensor:
        """The loss of one pass."""
        step = int(self.state.global_step)
        self._pass = (step, self._pass[1] + 1 if self._pass[0] == step else 0)
        loss: torch.Tensor = self.learner.loss(inputs, np.random.default_rng([self.params.seed, *self._pass]), step)
        return loss


def trainer_of(learner: Learner, params: Any, folder: Path, checkpoints: bool, device: str) -> Any:
    """The trainer of a learner: what `FitTrainer` says, the rest of what the learner's own does.

    Args:
        learner: the model and how it is trained; params: of the training.
        folder: of checkpoints; checkpoints: whether they are written.
        device: cpu or cuda.
    """
    usual = training_arguments(params, folder, checkpoints, device)
    arguments = learner.arguments(**usual | learner.steps(params, checkpoints))
    small = [SmallCheckpoints] if learner.small_checkpoints else []
    kind: Any = type(learner.trainer.__name__, (FitTrainer, *small, learner.trainer), {})
    return kind(learner, params, arguments)
