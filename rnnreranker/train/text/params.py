"""What trainings on single texts share: no groups and no choice of a loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rnnreranker.train.group.params import GroupParams, OneLengthParams, as_in
from rnnreranker.train.params import TrainingParams, TrainParams


@dataclass(frozen=True)
class TextParams(TrainingParams):
    """How a model is trained on texts one by one.

    Raises:
        InputError: values out of range, all of them in one message.
    """

    section: ClassVar[str] = TrainParams.section
    key_measure: ClassVar[str] = "loss"

    batch_size: int = as_in(TrainParams, "batch_size", 32)
    accumulate: int = as_in(TrainParams, "accumulate", 1)
    epochs: float = as_in(TrainParams, "epochs", 3.0)
    max_steps: int = as_in(TrainParams, "max_steps", 0)
    learning_rate: float = as_in(TrainParams, "learning_rate", 5e-5)
    weight_decay: float = as_in(TrainParams, "weight_decay", 0.01)
    warmup: float = as_in(TrainParams, "warmup", 0.1)
    decay: bool = as_in(GroupParams, "decay", True)
    clip: float = as_in(TrainParams, "clip", 1.0)
    evaluate_every: int = as_in(TrainParams, "evaluate_every", 0)
    patience: int = as_in(TrainParams, "patience", 0)
    validation_share: float = as_in(TrainParams, "validation_share", 0.1)
    max_length: int | None = as_in(OneLengthParams, "max_length", None)
    seed: int = as_in(TrainParams, "seed", 42)
