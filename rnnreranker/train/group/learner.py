"""What a model that is trained on groups tells its trainer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import torch
    import transformers

    from rnnreranker.labels.soft import Labels
    from rnnreranker.train.group.groups import Group


class Scored(NamedTuple):
    """What a model gives every query's candidates, (n,) float32 each.

    searched: as a search has them, which ranks by them; trained: as the loss has them; others: what else was measured
    on the way; scaled: labels that the loss has instead of targets, None = the targets.
    """

    searched: list[np.ndarray]
    trained: list[np.ndarray]
    others: dict[str, float]
    scaled: list[np.ndarray] | None = None


class Learner(ABC):
    """A model that is trained on groups.

    Attributes:
        trainer: the class of sentence-transformers that trains such models; arguments: the class of its arguments.
        folder: where the model came from; None where it begins from nothing.
        model: of sentence-transformers.
        loss: of sentence-transformers, around one of ours.
        callbacks: of the trainer, besides those that every training has.
    """

    trainer: ClassVar[type[Any]]
    arguments: ClassVar[type[Any]]
    folder: Path | None
    model: Any
    loss: torch.nn.Module
    callbacks: Sequence[transformers.TrainerCallback] = ()

    @abstractmethod
    def batch(self, groups: Sequence[Group]) -> dict[str, Any]:
        """What the trainer reads of some groups; under "label" what `loss` gets besides the columns."""

    @abstractmethod
    def scores(self, lists: Sequence[Labels]) -> Scored:
        """The scores of every query's candidates."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the model so that sentence-transformers loads it."""
