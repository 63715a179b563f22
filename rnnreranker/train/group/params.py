"""What all trainings on groups share: a positive and a few drawn negatives, read as texts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rnnreranker.base.settings import setting
from rnnreranker.train.group.negative_kinds import Kind
from rnnreranker.train.params import TrainingParams, TrainParams

LONGEST = 256  # tokens of a text where nothing else is said


def as_in(kind: Any, name: str, default: Any) -> Any:
    """The setting of that name that other settings have, with a default of its own."""
    return dataclasses.field(default=default, metadata=kind.__dataclass_fields__[name].metadata)


@dataclass(frozen=True)
class GroupParams(TrainingParams):
    """How a model is trained on groups of a positive and drawn negatives, whatever the model and the loss.

    Raises:
        InputError: values out of range, all of them in one message.
    """

    section: ClassVar[str] = TrainParams.section

    loss: str = as_in(TrainParams, "loss", "lce")
    group_size: int = setting(8, "candidates a query and step: a positive, the others negatives", at_least=1)
    depth: int = setting(100, "negatives are drawn from a query's first ones, as many as this", at_least=1)
    batch_size: int = as_in(TrainParams, "batch_size", 8)
    accumulate: int = as_in(TrainParams, "accumulate", 1)
    epochs: float = as_in(TrainParams, "epochs", 2.0)
    max_steps: int = as_in(TrainParams, "max_steps", 0)
    learning_rate: float = as_in(TrainParams, "learning_rate", 1e-5)
    weight_decay: float = as_in(TrainParams, "weight_decay", 0.01)
    warmup: float = as_in(TrainParams, "warmup", 0.1)
    decay: bool = setting(
        True, "linear decay of the learning rate to 0 after warm-up; no = it stays at its highest", tunable=False
    )
    clip: float = as_in(TrainParams, "clip", 1.0)
    evaluate_every: int = as_in(TrainParams, "evaluate_every", 0)
    key_measure: Literal["loss", "RR@10", "nDCG@10"] = as_in(TrainParams, "key_measure", "nDCG@10")
    patience: int = as_in(TrainParams, "patience", 0)
    validation_share: float = as_in(TrainParams, "validation_share", 0.1)
    validation_queries: int = as_in(TrainParams, "validation_queries", 10000)
    validation_candidates: int = setting(
        100, "first candidates of a validation query that are scored, its positives besides", at_least=1, tunable=False
    )
    seed: int = as_in(TrainParams, "seed", 42)

    @property
    def kind(self) -> Kind:
        """Where the negatives of a group come from."""
        return "run"

    @property
    def least(self) -> tuple[int, int]:
        """The candidates that a group takes of a pool, and how deep it takes them: what `groups.enough` asks for."""
        return (self.group_size if self.kind == "run" else 1), self.depth


@dataclass(frozen=True)
class OneLengthParams(GroupParams):
    """As `GroupParams`, of a model that cuts all texts at one length.

    Raises:
        InputError: values out of range, all of them in one message.
    """

    max_length: int | None = setting(
        None, f"tokens at which texts are cut; none = {LONGEST}, or the model's limit where it is lower", at_least=1
    )
