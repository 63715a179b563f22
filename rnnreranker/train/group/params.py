"""What all trainings on groups share: a positive and a few drawn negatives, read as texts."""

from __future__ import annotations

from dataclasses import dataclass

from rnnreranker.base.setting_order import in_order
from rnnreranker.base.settings import setting
from rnnreranker.train.group.negative_kinds import Kind
from rnnreranker.train.params import RankedParams, decay_setting, length_setting


@in_order
@dataclass(frozen=True)
class GroupParams(RankedParams):
    """How a model is trained on groups of a positive and drawn negatives, whatever the model and the loss."""

    loss: str = "lce"
    batch_size: int = 8
    epochs: float = 2.0
    weight_decay: float = 0.01
    group_size: int = setting(
        8, "candidates a query and step: a positive, the others negatives", at_least=1, before="batch_size"
    )
    depth: int = setting(100, "first candidates of a query that negatives are drawn from", at_least=1)
    decay: bool = decay_setting()
    validation_candidates: int = setting(
        100,
        "first candidates of a validation query that are scored, its positives besides",
        at_least=1,
        tunable=False,
        before="seed",
    )

    @property
    def of_batch(self) -> bool:
        """Whether the documents of other groups of a batch are negatives, whatever the loss."""
        return bool(getattr(self, "in_batch_negatives", False)) or self.kind == "in-batch"

    @property
    def kind(self) -> Kind:
        """Where the negatives of a group come from."""
        return "run"

    @property
    def least(self) -> tuple[int, int]:
        """The candidates that a group takes of a pool, and how deep it takes them: what `groups.enough` asks for."""
        return (self.group_size if self.kind == "run" else 1), self.depth


@in_order
@dataclass(frozen=True)
class OneLengthParams(GroupParams):
    """As `GroupParams`, of a model that cuts all texts at one length."""

    max_length: int | None = length_setting()
