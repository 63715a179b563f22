"""The Trainer of transformers with CODER's loss, optimiser, learning rate, validation and best checkpoint."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import ParameterError
from rnnreranker.base.private.transformers import SecondsAside
from rnnreranker.base.process import phases
from rnnreranker.encode.dense.query_encoder import QueryEncoder
from rnnreranker.encode.scorer.model import CandidateScorer
from rnnreranker.train.best import Best
from rnnreranker.train.losses.base import BatchLoss, Loss
from rnnreranker.train.query.batches import Collator, add_negatives, score
from rnnreranker.train.query.dynamic import DynamicContext
from rnnreranker.train.query.fairness import neutrality_divergence
from rnnreranker.train.query.optimizer import Schedule, make_optimizer
from rnnreranker.train.query.params import TrainParams
from rnnreranker.train.query.table import VectorTable
from rnnreranker.train.validation import Validation, validate


class CoderTrainer(SecondsAside, transformers.Trainer):
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
        wanted = self.params.random_negatives, self.params.in_batch_negatives or isinstance(self.loss, BatchLoss)
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
            raise ParameterError(f"step {step}: the loss is {loss.item()}; try a lower {argument('learning_rate')}")
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

    def save_beside(self, checkpoint: Path) -> None:
        """Write the candidates in use into a checkpoint."""
        if self.dynamic is not None:
            self.dynamic.save(checkpoint)

    def load_beside(self, checkpoint: Path) -> None:
        """Take up the candidates of a checkpoint."""
        if self.dynamic is not None:
            self.dynamic.load(checkpoint)

    def validation(self) -> Validation:
        """The validation of the weights as they are."""
        chosen = self.params
        return validate(self.encoder, self.table, self.held_out, self.loss, chosen.batch_size, chosen.seed)
