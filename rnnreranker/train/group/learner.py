"""What a model that is trained on groups tells its trainer."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers.base.sampler import DefaultBatchSampler
from torch.utils.data import SequentialSampler

from rnnreranker.labels.soft import Labels
from rnnreranker.train.group.groups import Group, Groups
from rnnreranker.train.group.inputs import GroupInputs
from rnnreranker.train.losses import Loss
from rnnreranker.train.params import GroupParams
from rnnreranker.train.trainer import Learner
from rnnreranker.train.validation import Scored, Validation, validate_lists


class GroupLearner(Learner):
    """A model of sentence-transformers that is trained on groups.

    Args:
        encoder: what it begins as; params: of the training; ranking: the loss that it lowers.
        inputs: candidates and texts.

    Attributes:
        groups: as many as all steps take.
        loss: of sentence-transformers, around one of ours.
    """

    loss: torch.nn.Module
    valid_label_columns: Sequence[str] = ()  # sentence-transformers asks a collator for it

    def __call__(self, rows: Sequence[Mapping[str, int]]) -> dict[str, Any]:
        """The batch of rows of the data set, each of which holds the number of a group."""
        return self.batch([self.groups[row["group"]] for row in rows])

    def __init__(self, encoder: str, params: GroupParams, ranking: Loss, inputs: GroupInputs) -> None:
        self.encoder, self.params, self.ranking, self.inputs = encoder, params, ranking, inputs
        self.settings = params.to_dict() | ranking.params.to_dict()
        drawn = params.group_size, params.depth, params.seed, params.kind, inputs.collection
        self.groups = Groups(inputs.pools, count_of(params, len(inputs.pools)), *drawn)
        queries = {"training_queries": len({pool.qid for pool in inputs.pools})}
        self.made = {**inputs.made, **queries, "validation_queries": len(inputs.checked)}
        self.content = inputs.content()

    @abstractmethod
    def batch(self, groups: Sequence[Group]) -> dict[str, Any]:
        """What the trainer reads of some groups; under "label" what `loss` gets besides the columns."""

    @abstractmethod
    def scores(self, lists: Sequence[Labels]) -> Scored:
        """The scores of every query's candidates."""

    def save(self, folder: Any) -> None:
        """As sentence-transformers saves such a model, and loads it."""
        self.model.save_pretrained(str(folder), create_model_card=False)

    def data(self) -> dict[str, Any]:
        """Numbers of groups, of which the learner makes batches, and the loss."""
        numbers, unread = ({"group": range(count)} for count in (len(self.groups), 1))  # validation has its own queries
        sets = {"train_dataset": Dataset.from_dict(numbers), "eval_dataset": Dataset.from_dict(unread)}
        return {**sets, "loss": self.loss, "data_collator": self}

    def size(self, inputs: Mapping[str, Any]) -> int:
        return len(inputs["label"]["targets"])

    def steps(self, params: GroupParams, checkpoints: bool) -> dict[str, Any]:
        """As of every model; the groups of all epochs are one epoch to the trainer, in their order."""
        of_step = params.batch_size * params.accumulate
        every = params.evaluate_every or math.ceil(len(self.groups.pools) / of_step)
        return (
            super().steps(params, checkpoints)
            | dict.fromkeys(("eval_strategy", "logging_strategy"), "steps")
            | {"save_strategy": "steps" if checkpoints else "no", "num_train_epochs": 1}
            | {"max_steps": math.ceil(len(self.groups) / of_step), "batch_sampler": _in_order}
            | dict.fromkeys(("eval_steps", "save_steps", "logging_steps"), every)
        )

    def validation(self) -> Validation:
        lists = self.inputs.checked
        return validate_lists(lists, self.scores(lists), self.ranking, self.params.seed)


def count_of(params: GroupParams, pools: int) -> int:
    """The groups that a training takes: by steps where they are given, else by epochs, rounded up."""
    if params.max_steps:
        return params.max_steps * params.batch_size * params.accumulate
    return math.ceil(params.epochs * pools)


def _in_order(dataset: Any, batch_size: int, drop_last: bool, **_: Any) -> DefaultBatchSampler:
    """The rows as they stand, so that a resumed training goes on with those that are left."""
    return DefaultBatchSampler(SequentialSampler(dataset), batch_size=batch_size, drop_last=drop_last)
