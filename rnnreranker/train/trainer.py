"""The Trainer of transformers with CODER's loss, optimiser, learning rate, validation and best checkpoint."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

from rnnreranker.encode.query_encoder import QueryEncoder
from rnnreranker.errors import ParameterError
from rnnreranker.process import phases
from rnnreranker.scorer.model import CandidateScorer
from rnnreranker.train.batches import Collator, add_negatives, score
from rnnreranker.train.checkpoints import read_mark, write_mark
from rnnreranker.train.dynamic import DynamicContext
from rnnreranker.train.fairness import neutrality_divergence
from rnnreranker.train.losses.base import Loss
from rnnreranker.train.optimizer import Schedule, make_optimizer
from rnnreranker.train.params import TrainParams
from rnnreranker.train.table import VectorTable
from rnnreranker.train.validation import Validation, validate

BEST = "best.safetensors"  # in a checkpoint: the best weights so far


class CoderTrainer(transformers.Trainer):
    """Trains a QueryEncoder, or a CandidateScorer, against a VectorTable.

    Args:
        encoder: what is trained.
        table: the documents' vectors.
        training, validation: collators over the two sets of queries.
        params: of the training; loss: that it lowers.
        arguments: of the Trainer, made from `params`.
        neutrality: (D,) float32 in [0, 1] for every row of the table, where `neutrality_weight` is not 0.
        dynamic: makes the candidates of the training queries again; None = they stay.
    """

    def __init__(
        self,
        encoder: QueryEncoder | CandidateScorer,
        table: VectorTable,
        training: Collator,
        validation: Collator,
        params: TrainParams,
        loss: Loss,
        arguments: transformers.TrainingArguments,
        neutrality: np.ndarray | None = None,
        dynamic: DynamicContext | None = None,
    ) -> None:
        self.dynamic = dynamic
        self.neutrality = None if neutrality is None else torch.from_numpy(neutrality)
        self.encoder, self.table, self.params, self.loss = encoder, table, params, loss
        self.held_out = validation
        self.best = Best(self)
        self._passes = (-1, 0)
        self.queries_seen, self.seconds_aside = 0, 0.0  # trained on; spent on validations and checkpoints
        super().__init__(
            model=encoder,
            args=arguments,
            data_collator=training,
            train_dataset=list(range(len(training.samples))),
            eval_dataset=list(range(len(validation.samples))),
            callbacks=[self.best],
        )
        self.model_accepts_loss_kwargs = False  # the loss is a mean: passes are averaged before a step
        self.remove_callback(transformers.PrinterCallback)
        self.remove_callback(transformers.ProgressCallback)

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The mean loss of one pass; negatives depend on seed, step and pass alone, so a resumed run draws the same."""
        step = int(self.state.global_step)
        phases.tell(f"step {step + 1} of {self.state.max_steps}")
        self._passes = (step, self._passes[1] + 1 if self._passes[0] == step else 0)
        rng = np.random.default_rng([self.params.seed, *self._passes])
        wanted = self.params.random_negatives, self.params.in_batch_negatives
        self.queries_seen += len(inputs["batch"].rows)
        batch = inputs["batch"]
        if self.dynamic is not None:
            batch = self.dynamic.current(self.encoder.dense, batch, step)
        batch = add_negatives(batch, len(self.table), *wanted, rng)
        scores = score(self.encoder, self.table, batch)
        valid = torch.from_numpy(batch.valid).to(scores.device)
        targets, positive = (torch.from_numpy(part).to(scores.device) for part in (batch.targets, batch.positive))
        loss = self.loss(scores, targets, positive, valid)
        if self.neutrality is not None and self.params.neutrality_weight:
            neutral = self.neutrality[torch.from_numpy(batch.rows)].to(scores.device)  # padding finds the last: masked
            divergence = neutrality_divergence(scores, neutral, valid, self.params.neutrality_cutoff)
            loss = loss + self.params.neutrality_weight * divergence
        if not torch.isfinite(loss):
            raise ParameterError(f"step {step}: the loss is {loss.item()}; try a lower --learning-rate")
        return (loss, {}) if return_outputs else loss

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """See `make_optimizer`."""
        if self.optimizer is None:
            self.optimizer = make_optimizer(self.encoder, self.params)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """The schedule of the parameters."""
        if self.lr_scheduler is None:
            params = self.params
            epoch = math.ceil(len(self.train_dataset) / (params.batch_size * params.accumulate))  # type: ignore[arg-type]
            every = params.evaluate_every or epoch
            schedule: Any = Schedule(optimizer or self.create_optimizer(), params, num_training_steps, every)
            self.lr_scheduler = schedule
        return self.lr_scheduler

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Validate, tell the schedule, and log."""
        metrics = {f"eval_{name}": value for name, value in self.validation().measures.items()}
        metrics["eval_inverse_temperature"] = self.encoder.inverse_temperature.item()
        if isinstance(self.lr_scheduler, Schedule):
            self.lr_scheduler.observe(metrics["eval_loss"])
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _maybe_log_save_evaluate(self, *args: Any, **kwargs: Any) -> None:
        begun = time.perf_counter()
        super()._maybe_log_save_evaluate(*args, **kwargs)
        self.seconds_aside += time.perf_counter() - begun

    def validation(self) -> Validation:
        """The validation of the weights as they are."""
        chosen = self.params
        return validate(self.encoder, self.table, self.held_out, self.loss, chosen.batch_size, chosen.seed)


class Best(transformers.TrainerCallback):
    """The best weights so far, the untrained ones included, kept in memory and with every checkpoint."""

    def __init__(self, trainer: CoderTrainer) -> None:
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
        found = others["metrics"][self._measure]
        if self.value is None or self._sign * found > self._sign * self.value:
            self.value, self.step, self.stale = found, int(state.global_step), 0
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
        if self._trainer.dynamic is not None:
            self._trainer.dynamic.save(folder)
        ended = bool(control.should_training_stop or state.global_step >= state.max_steps)
        write_mark(folder, {"value": self.value, "step": self.step, "stale": self.stale, "ended": ended})

    def load(self, checkpoint: Path) -> None:
        """Take up where a checkpoint was written.

        Raises:
            InputError: a file of it that is not as it was written.
        """
        kept = read_mark(checkpoint)
        self.value, self.step, self.stale, self.ended = kept["value"], kept["step"], kept["stale"], kept["ended"]
        self.weights = load_file(str(checkpoint / BEST))
        if self._trainer.dynamic is not None:
            self._trainer.dynamic.load(checkpoint)

    def put_back(self) -> None:
        """Load the best weights into the encoder."""
        self._trainer.encoder.load_state_dict(self.weights, strict=False)

    def _trained(self) -> dict[str, torch.Tensor]:
        return {n: p for n, p in self._trainer.encoder.named_parameters() if p.requires_grad}


class Observer(transformers.TrainerCallback):
    """Tells a function the step and the measures of every validation."""

    def __init__(self, tell: Callable[[int, dict[str, float]], None]) -> None:
        self._tell = tell

    def on_evaluate(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Pass the measures on."""
        measures = {name.removeprefix("eval_"): value for name, value in others["metrics"].items()}
        self._tell(int(state.global_step), measures)
