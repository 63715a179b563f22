"""RAdam over what is trained, and its learning rate by step: linear warm-up, then linear decay or cuts at a plateau."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from rnnreranker.encode.scorer.model import CandidateScorer
from rnnreranker.train.query.params import TrainParams


def make_optimizer(model: torch.nn.Module, params: TrainParams) -> torch.optim.Optimizer:
    """RAdam over the trained parameters; weight decay only on those with two dimensions or more.

    A scorer has its own learning rate.
    """
    parts: list[tuple[torch.nn.Module, float]] = [(model, params.learning_rate)]
    if isinstance(model, CandidateScorer):
        parts = [(model.encoder, params.learning_rate), (model.scorer, model.params.learning_rate)]
    groups = []
    for part, rate in parts:
        trained = [parameter for parameter in part.parameters() if parameter.requires_grad]
        decayed, others = ([p for p in trained if (p.dim() > 1) == wanted] for wanted in (True, False))
        groups.append({"params": decayed, "weight_decay": params.weight_decay, "lr": rate})
        groups.append({"params": others, "weight_decay": 0.0, "lr": rate})
    return torch.optim.RAdam(groups, lr=params.learning_rate, eps=params.epsilon, decoupled_weight_decay=True)


class Schedule(LRScheduler):
    """The learning rate of every group by step; its whole state is in `state_dict`.

    Plateau: torch's ReduceLROnPlateau cuts the highest rates, for as long as the loss is not below
    (1 - plateau_threshold) times the best; none falls below `final_ratio` of what it was. Patience and cool-down are
    given in steps and come to patience / every validations, rounded, and those that fall into the cool-down.

    Args:
        optimizer: at the highest learning rates.
        params: warm-up, kind of schedule and its numbers.
        steps: of the whole training.
        every: steps between two validations.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, params: TrainParams, steps: int, every: int) -> None:
        self._warmup = warmup_steps(params, steps)
        self._steps = max(steps, 1)
        self._final = params.final_ratio
        self._plateau = None
        if params.schedule == "plateau":
            rates = [group["lr"] for group in optimizer.param_groups]
            highest = [{"params": [torch.zeros(1, requires_grad=True)], "lr": rate} for rate in rates]
            self._plateau = ReduceLROnPlateau(
                torch.optim.SGD(highest),  # of nothing: what is cut is the rate that warm-up leads to
                factor=params.plateau_factor,
                patience=round(params.plateau_patience / every),
                threshold=params.plateau_threshold,
                cooldown=params.plateau_cooldown // every,
                min_lr=[rate * params.final_ratio for rate in rates],
            )
        super().__init__(optimizer)

    def get_lr(self) -> list[Any]:
        """The learning rate of every group."""
        step = self.last_epoch  # torch's name for the number of steps taken
        highest = self.base_lrs if self._plateau is None else self._plateau.get_last_lr()
        factor = 1.0
        if step < self._warmup:
            factor = (step + 1) / (self._warmup + 1)
        elif self._plateau is None:
            share = (step - self._warmup) / max(self._steps - self._warmup, 1)
            factor = 1 - (1 - self._final) * min(share, 1.0)
        return [rate * factor for rate in highest]

    def observe(self, loss: float) -> None:
        """Take note of a validation loss: with a plateau, cut the learning rate where it is due."""
        if self._plateau is not None:
            self._plateau.step(loss)
            for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
                group["lr"] = rate

    def state_dict(self) -> dict[str, Any]:
        """Plain values, the plateau's among them."""
        state = super().state_dict()
        state["_plateau"] = self._plateau and self._plateau.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up a state of `state_dict`."""
        kept = dict(state_dict)
        plateau = kept.pop("_plateau")
        super().load_state_dict(kept)
        if self._plateau is not None:
            self._plateau.load_state_dict(plateau)
            for group, rate in zip(self._plateau.optimizer.param_groups, self._plateau.get_last_lr(), strict=True):
                group["lr"] = rate


def warmup_steps(params: TrainParams, steps: int) -> int:
    """Steps of warm-up: `warmup` itself from 1 on, below 1 that share of all steps, rounded down."""
    return int(params.warmup) if params.warmup >= 1 else int(params.warmup * steps)
