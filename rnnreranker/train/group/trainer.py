"""What the trainers of sentence-transformers do otherwise here: groups in order, validation, small checkpoints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from datasets import Dataset
from sentence_transformers.base.sampler import DefaultBatchSampler
from torch.utils.data import SequentialSampler

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import ParameterError
from rnnreranker.base.process import phases
from rnnreranker.labels.soft import Labels
from rnnreranker.train.best import AtTheEnd, Best
from rnnreranker.train.checkpoints import training_arguments
from rnnreranker.train.group.groups import Groups
from rnnreranker.train.group.learner import Learner
from rnnreranker.train.group.params import GroupParams
from rnnreranker.train.losses.base import Loss
from rnnreranker.train.small_checkpoints import SmallCheckpoints
from rnnreranker.train.validation import Validation, validate_lists


class GroupCollator:
    """The batches of a learner from numbers of groups."""

    valid_label_columns: Sequence[str] = ()  # sentence-transformers asks for it

    def __init__(self, groups: Groups, learner: Learner) -> None:
        self._groups, self._learner = groups, learner

    def __call__(self, rows: Sequence[Mapping[str, int]]) -> dict[str, Any]:
        """The batch of rows of the data set, each of which holds the number of a group."""
        return self._learner.batch([self._groups[row["group"]] for row in rows])


class GroupTrainer(SmallCheckpoints):
    """Put before a trainer of sentence-transformers: see `trainer_of`."""

    def __init__(
        self,
        learner: Learner,
        groups: Groups,
        held_out: Sequence[Labels],
        params: GroupParams,
        ranking: Loss,
        arguments: Any,
    ) -> None:
        self.learner, self.encoder, self.held_out = learner, learner.model, held_out
        self.params, self.ranking = params, ranking
        self.best = Best(self)
        self.validations: dict[int, Validation] = {}  # by step, of this process
        self.groups_seen, self.seconds_aside = 0, 0.0  # trained on; spent on validations and checkpoints
        super().__init__(
            model=learner.model,
            args=arguments,
            train_dataset=Dataset.from_dict({"group": range(len(groups))}),
            eval_dataset=Dataset.from_dict({"group": [0]}),  # not read: `evaluate` has its own queries
            loss=learner.loss,
            data_collator=GroupCollator(groups, learner),
            callbacks=[AtTheEnd(), self.best, *learner.callbacks],
        )  # type: ignore[call-arg]

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The loss of one pass, which must be a number."""
        step = int(self.state.global_step)  # type: ignore[attr-defined]
        phases.tell(f"step {step + 1} of {self.state.max_steps}")  # type: ignore[attr-defined]
        self.groups_seen += len(inputs["label"]["targets"])
        loss = super().compute_loss(model, inputs, *args, **kwargs)  # type: ignore[misc]
        if not torch.isfinite(loss):
            raise ParameterError(f"step {step}: the loss is {loss.item()}; try a lower {argument('learning_rate')}")
        return loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Validate, and log."""
        validation = self.validations[int(self.state.global_step)] = self.validation()  # type: ignore[attr-defined]
        metrics = {f"eval_{name}": value for name, value in validation.measures.items()}
        self.log(dict(metrics))  # type: ignore[attr-defined]
        trainer: Any = self
        trainer.control = self.callback_handler.on_evaluate(  # type: ignore[attr-defined]
            trainer.args, trainer.state, trainer.control, metrics
        )
        return metrics

    def validation(self) -> Validation:
        """The validation of the weights as they are."""
        was_training = self.encoder.training
        self.encoder.eval()
        with torch.no_grad():
            scored = self.learner.scores(self.held_out)
        self.encoder.train(was_training)
        return validate_lists(self.held_out, scored, self.ranking, self.params.seed)

    def add_model_card_callback(self, _: Any) -> None:
        """No model card: it would name the day and the machine."""


def trainer_of(
    learner: Learner,
    groups: Groups,
    held_out: Sequence[Labels],
    params: GroupParams,
    ranking: Loss,
    folder: Path,
    checkpoints: bool,
    device: str,
) -> Any:
    """The trainer of a learner: what `GroupTrainer` says, the rest of what sentence-transformers does.

    Args:
        learner: the model and how it is trained.
        groups: as many as all steps take.
        held_out: the candidates of the validation queries.
        params, ranking: of the training; the loss of validation.
        folder: of checkpoints; checkpoints: whether they are written.
        device: cpu or cuda.
    """
    steps = math.ceil(len(groups) / (params.batch_size * params.accumulate))
    epoch = math.ceil(len(groups.pools) / (params.batch_size * params.accumulate))
    every = params.evaluate_every or epoch
    usual = training_arguments(params, folder, checkpoints, device)
    when = dict.fromkeys(("eval_strategy", "logging_strategy"), "steps")
    arguments = learner.arguments(
        **usual
        | when
        | {"save_strategy": "steps" if checkpoints else "no", "num_train_epochs": 1, "max_steps": steps}
        | {"eval_steps": every, "save_steps": every, "logging_steps": every}
        | {"weight_decay": params.weight_decay, "warmup_steps": params.warmup}
        | {"lr_scheduler_type": "linear" if params.decay else "constant_with_warmup"}
        | {"batch_sampler": _in_order}
    )
    kind: Any = type(learner.trainer.__name__, (GroupTrainer, learner.trainer), {})
    trainer = kind(learner, groups, held_out, params, ranking, arguments)
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.remove_callback(transformers.ProgressCallback)
    return trainer


def _in_order(dataset: Any, batch_size: int, drop_last: bool, **_: Any) -> DefaultBatchSampler:
    """The rows as they stand, so that a resumed training goes on with those that are left."""
    return DefaultBatchSampler(SequentialSampler(dataset), batch_size=batch_size, drop_last=drop_last)
