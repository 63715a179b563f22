"""What trainings on single texts share: no groups and no choice of a loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rnnreranker.base.setting_order import in_order
from rnnreranker.train.params import TrainingParams, decay_setting, length_setting


@in_order
@dataclass(frozen=True)
class TextParams(TrainingParams):
    """How a model is trained on texts one by one; InputError: values out of range, all of them in one message."""

    key_measure: ClassVar[str] = "loss"

    epochs: float = 3.0
    learning_rate: float = 5e-5
    weight_decay: float = 0.01
    decay: bool = decay_setting()
    max_length: int | None = length_setting(before="seed")
