"""Arms of a study: label method, loss and candidates that a query encoder is trained with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rnnreranker.train.params import TrainParams

BASE = "base"  # the encoder as it is
CODER = "CODER"  # hard labels
SMOOTHING = {
    "uniform": "+ uniform",
    "query": "+ query",
    "geometric": "+ geometric",
    "jaccard": "+ Jaccard",
    "evidence": "+ mixed",
}
HPARAM = ", hparam"  # the hyperparameters of the other side
LOSSES: tuple[Literal["kl", "cross-entropy", "margin", "multi-tier"], ...] = (
    "kl",
    "cross-entropy",
    "margin",
    "multi-tier",
)
NEGATIVES: dict[str, dict[str, Any]] = {
    "retrieved": {},
    "retrieved and in-batch": {"in_batch_negatives": True},
    "random": {"candidates": 1, "random_negatives": 100},
}


@dataclass(frozen=True)
class Arm:
    """One way of training.

    Attributes:
        name: in tables and figures.
        method: of labels, see `rnnreranker.labels.labelers.METHODS`.
        params: of the training; its seed is set by the study.
    """

    name: str
    method: str
    params: TrainParams

    def seeded(self, seed: int) -> TrainParams:
        """The parameters with a seed."""
        return dataclasses.replace(self.params, seed=seed)


def label_arms(coder: TrainParams, smoothing: TrainParams) -> list[Arm]:
    """CODER and every smoothing method, each with its own hyperparameters and with those of the other side.

    Args:
        coder: chosen for hard labels.
        smoothing: chosen for evidence-based labels; where they equal `coder`, the arms of the other side are the same
            and are left out.
    """
    arms = [Arm(CODER, "hard", coder)]
    arms += [Arm(f"{CODER} {name}", method, smoothing) for method, name in SMOOTHING.items()]
    if coder != smoothing:
        arms += [Arm(f"{CODER}{HPARAM}", "hard", smoothing)]
        arms += [Arm(f"{CODER} {name}{HPARAM}", method, coder) for method, name in SMOOTHING.items()]
    return arms


def loss_arms(params: TrainParams) -> list[Arm]:
    """Every loss with every kind of negatives (001, Figure 4); mixed labels for the list-wise and multi-tier losses."""
    arms = []
    for loss in LOSSES:
        for negatives, settings in NEGATIVES.items():
            method = "evidence" if loss == "multi-tier" else "hard"
            arms.append(Arm(f"{loss}, {negatives}", method, dataclasses.replace(params, loss=loss, **settings)))
    return arms


def candidate_arms(params: TrainParams, counts: Sequence[int]) -> list[Arm]:
    """CODER with N candidates a query, for every N (001, Figure 5)."""
    return [Arm(f"N = {count}", "hard", dataclasses.replace(params, candidates=count)) for count in counts]
