"""The learning rate by step: linear warm-up, then linear decay or cuts when the validation loss no longer falls."""

from __future__ import annotations

import math
from typing import Any

import torch

from rnnreranker.train.params import TrainParams


class Schedule(torch.optim.lr_scheduler.LRScheduler):
    """Multiplies every group's learning rate by `factor()`; its whole state is in `state_dict`.

    Args:
        optimizer: at the highest learning rate.
        params: warm-up, kind of schedule and its numbers.
        steps: of the whole training.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, params: TrainParams, steps: int) -> None:
        self._plateau = params.schedule == "plateau"
        self._warmup = warmup_steps(params, steps)
        self._steps = max(steps, 1)
        self._final = params.final_ratio
        self._cut, self._patience = params.plateau_factor, params.plateau_patience
        self._threshold, self._cooldown = params.plateau_threshold, params.plateau_cooldown
        self.best = math.inf
        self.since = 0  # the step from which steps without a better loss are counted
        self.scale = 1.0
        super().__init__(optimizer)

    def factor(self) -> float:
        """What the highest learning rate is multiplied by at this step."""
        step = self.last_epoch  # torch's name for the number of steps taken
        if step < self._warmup:
            return (step + 1) / (self._warmup + 1)
        if self._plateau:
            return self.scale
        share = (step - self._warmup) / max(self._steps - self._warmup, 1)
        return 1 - (1 - self._final) * min(share, 1.0)

    def get_lr(self) -> list[Any]:
        """The learning rate of every group."""
        return [base * self.factor() for base in self.base_lrs]

    def observe(self, loss: float) -> None:
        """Take note of a validation loss; plateau: cut after `plateau_patience` steps without a better one.

        After a cut, `plateau_cooldown` steps are not counted; nor are those of the warm-up. A loss is better when it
        is below (1 - plateau_threshold) times the best.
        """
        step = self.last_epoch
        if loss < self.best * (1 - self._threshold):
            self.best, self.since = loss, max(step, self._warmup, self.since)
        elif self._plateau and step - max(self.since, self._warmup) >= self._patience:
            self.scale *= self._cut
            self.since = step + self._cooldown
            for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
                group["lr"] = rate


def warmup_steps(params: TrainParams, steps: int) -> int:
    """Steps of warm-up: `warmup` itself from 1 on, below 1 that share of all steps, rounded down."""
    return int(params.warmup) if params.warmup >= 1 else int(params.warmup * steps)
