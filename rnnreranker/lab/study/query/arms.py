"""Arms of a study: label method, loss and candidates that a query encoder is trained with."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import find, methods
from rnnreranker.lab.study.tasks import Task
from rnnreranker.train.params import TrainParams

BASE = "base"  # the encoder as it is
CODER = "CODER"  # hard labels
SMOOTHING = ("uniform", "query", "geometric", "jaccard", "evidence")  # label methods that a study takes by default
SHOWN = {"jaccard": "Jaccard", "evidence": "mixed", "run": "fused run"}  # the first two as the paper calls them
LEARNT = {"share": "share learnt", "confident": "threshold learnt"}  # mass of the labels → what a title says of it
HPARAM = ", hparam"  # the hyperparameters of the other side
NEGATIVES: dict[str, dict[str, Any]] = {
    "retrieved": {},
    "retrieved and in-batch": {"in_batch_negatives": True},
    "random": {"candidates": 1, "random_negatives": 100},
}


@dataclass(frozen=True)
class Side:
    """Hyperparameters of one kind of labels.

    Attributes:
        params: of the training; the seed is set by the task.
        rates: task name → the learning rate that is taken there; empty = that of `params`.
    """

    params: TrainParams
    rates: Mapping[str, float] = field(default_factory=dict)

    def params_of(self, task: Task) -> TrainParams:
        """The parameters on a task."""
        rate = self.rates.get(task.name, self.params.learning_rate)
        return dataclasses.replace(self.params, learning_rate=rate, seed=task.seed)

    def replaced(self, **changed: Any) -> Side:
        """The same with other values of some parameters."""
        return dataclasses.replace(self, params=dataclasses.replace(self.params, **changed))

    def to_dict(self) -> dict[str, Any]:
        """The parameters, plain values; the learning rate is None where tasks differ in it."""
        rates = set(self.rates.values()) or {self.params.learning_rate}
        return self.params.to_dict() | {"learning_rate": rates.pop() if len(rates) == 1 else None}


@dataclass(frozen=True)
class Arm:
    """One way of training.

    Attributes:
        name: in tables and figures.
        method: of labels, see `rnnreranker.labels`.
        side: its hyperparameters.
        mass: "share" or "confident": how much leaves the positives is learnt, see `labels.learnt_mass`; None = not.
        taught: fingerprint of what the method reads beside the vectors; empty where it reads nothing else.
    """

    name: str
    method: str
    side: Side
    mass: str | None = None
    taught: str = ""

    def described(self, task: Task) -> list[Any]:
        """The method of labels, the parameters of the training on a task, what teaches, what a mass is learnt of."""
        learnt = [self.mass, sorted(task.known_of_validation)] if self.mass else []
        taught = [self.taught] if self.taught else []
        return [self.method, self.side.params_of(task).to_dict(), *taught, *learnt]


def label_arms(
    coder: Side,
    smoothing: Side,
    methods: Sequence[str] = SMOOTHING,
    other_side: bool = True,
    taught: Mapping[str, str] = MappingProxyType({}),
) -> list[Arm]:
    """CODER and smoothing methods, each with its own hyperparameters and with those of the other side.

    Args:
        coder: chosen for hard labels.
        smoothing: chosen for evidence-based labels; where they equal `coder`, the arms of the other side are the same
            and are left out.
        methods: of labels, by name, of this package or another one; with `:share` or `:confident` behind it where the
            mass is learnt.
        other_side: False leaves the arms with the hyperparameters of the other side out in any case.
        taught: method → fingerprint of what it reads beside the vectors: scores of a run, tokens.

    Raises:
        InputError: no such method or mass.
    """
    arms = [Arm(CODER, "hard", coder), *(_smoothing_arm(method, smoothing, taught) for method in methods)]
    if other_side and coder != smoothing:
        others = [Arm(CODER, "hard", smoothing), *(_smoothing_arm(method, coder, taught) for method in methods)]
        arms += [dataclasses.replace(arm, name=f"{arm.name}{HPARAM}") for arm in others]
    return arms


def _smoothing_arm(written: str, side: Side, taught: Mapping[str, str]) -> Arm:
    method, _, mass = written.partition(":")
    find("labeler", method)
    if mass and mass not in LEARNT:
        raise InputError(f"{written}: {nearest(mass, LEARNT)}")
    learnt = f", {LEARNT[mass]}" if mass else ""
    name = f"{CODER} + {SHOWN.get(method, method)}{learnt}"
    return Arm(name, method, side, mass or None, taught.get(method, ""))


def loss_arms(side: Side) -> list[Arm]:
    """Every loss of many candidates with every kind of negatives (001, Figure 4); evidence for the multi-tier loss."""
    arms = []
    for loss in (name for name, found in methods("loss").items() if not found.of_groups):
        for negatives, settings in NEGATIVES.items():
            method = "evidence" if loss == "multi-tier" else "hard"
            arms.append(Arm(f"{loss}, {negatives}", method, side.replaced(loss=loss, **settings)))
    return arms


def candidate_arms(side: Side, counts: Sequence[int]) -> list[Arm]:
    """CODER with N candidates a query, for every N (001, Figure 5)."""
    return [Arm(f"N = {count}", "hard", side.replaced(candidates=count)) for count in counts]


def settings_behind(where: str, settings: str) -> dict[str, Any]:
    """The settings behind the name of an arm, `KEY=VALUE,KEY=VALUE`, each read as YAML.

    >>> settings_behind("--dual-arms bs", "alpha=0.2,degrees=maxmin")
    {'alpha': 0.2, 'degrees': 'maxmin'}

    Raises:
        InputError: another form; where: what is named in the message.
    """
    import yaml

    pairs = [pair.partition("=") for pair in settings.split(",")] if settings else []
    if wrong := [key for key, sign, value in pairs if not (key and sign and value)]:
        raise InputError(f"{where}: {wrong[0]}: expected KEY=VALUE, joined by commas")
    return {key: yaml.safe_load(value) for key, _, value in pairs}
