"""What a trainer is told at every validation: which weights are the best so far, and when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
import transformers
from safetensors.torch import load_file, save_file

from rnnreranker.train.checkpoints import read_mark, write_mark

BEST = "best.safetensors"  # in a checkpoint: the best weights so far


class Validating(Protocol):
    """A trainer that validates: what `Best` asks of it."""

    learner: Any  # a `Learner`
    params: Any  # with key_measure and patience
    seconds_aside: float

    def evaluate(self) -> dict[str, float]: ...


class Best(transformers.TrainerCallback):
    """The best weights so far, the untrained ones included, kept in memory and with every checkpoint."""

    def __init__(self, trainer: Validating) -> None:
        self._trainer = trainer
        self._measure = f"eval_{trainer.params.key_measure}"
        self._sign = -1.0 if trainer.params.key_measure == "loss" else 1.0
        self.value: float | None = None
        self.step = 0
        self.stale = 0  # validations since
        self.ended = False  # as of the checkpoint that was loaded: nothing is left to train
        self.weights: dict[str, torch.Tensor] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Validate before the first step."""
        if state.global_step == 0:
            begun = time.perf_counter()
            self._trainer.evaluate()
            self._trainer.seconds_aside += time.perf_counter() - begun

    def on_evaluate(self, args: Any, state: Any, control: Any, **others: Any) -> Any:
        """Keep the weights where they are better; stop when they have not been for long."""
        measured = others["metrics"][self._measure]
        if self.value is None or self._sign * measured > self._sign * self.value:
            self.value, self.step, self.stale = measured, int(state.global_step), 0
            self.weights = {name: value.detach().cpu().clone() for name, value in self._trained().items()}
        else:
            self.stale += 1
            patience = self._trainer.params.patience
            if patience and self.stale >= patience:
                control.should_training_stop = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the best weights into the checkpoint, and the mark that it is whole."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        save_file(self.weights, str(folder / BEST))
        if self._trainer.learner.kept is not None:
            self._trainer.learner.kept.save(folder)
        ended = bool(control.should_training_stop or state.global_step >= state.max_steps)
        write_mark(folder, {"value": self.value, "step": self.step, "stale": self.stale, "ended": ended})

    def load(self, checkpoint: Path) -> None:
        """Take up where a checkpoint was written; InputError: a file of it that is not as it was written."""
        kept = read_mark(checkpoint)
        self.value, self.step, self.stale, self.ended = kept["value"], kept["step"], kept["stale"], kept["ended"]
        self.weights = load_file(str(checkpoint / BEST))
        if self._trainer.learner.kept is not None:
            self._trainer.learner.kept.load(checkpoint)

    def put_back(self) -> None:
        """Load the best weights into the model."""
        self._trainer.learner.model.load_state_dict(self.weights, strict=False)

    def _trained(self) -> dict[str, torch.Tensor]:
        return {n: p for n, p in self._trainer.learner.model.named_parameters() if p.requires_grad}


class AtTheEnd(transformers.TrainerCallback):
    """Validates after the last step, too."""

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """Ask for it."""
        if state.global_step >= state.max_steps:
            control.should_evaluate = True
        return control


class Observer(transformers.TrainerCallback):
    """Tells a function the step and the measures of every validation."""

    def __init__(self, tell: Callable[[int, dict[str, float]], None]) -> None:
        self._tell = tell

    def on_evaluate(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Pass the measures on."""
        measures = {name.removeprefix("eval_"): value for name, value in others["metrics"].items()}
        self._tell(int(state.global_step), measures)
