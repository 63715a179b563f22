"""Arms of a study: label method, loss and candidates that a query encoder is trained with."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form, choose
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import methods
from rnnreranker.base.written_form import PRESET, Written
from rnnreranker.lab.study.tasks import Task
from rnnreranker.labels.params import unlearnt
from rnnreranker.labels.request import LABEL_PRESET, SOURCE, ChosenLabeler, choose_labeler
from rnnreranker.train.losses.base import GroupLoss
from rnnreranker.train.query.params import TrainParams

BASE = "base"  # the encoder as it is
CODER = "CODER"  # hard labels
SMOOTHING = ("uniform", "query", "geometric", "jaccard", "evidence")  # label methods that a study takes by default
SHOWN = {"jaccard": "Jaccard", "evidence": "mixed", "run": "fused run"}  # the first two as the paper calls them
LEARNT = {"share": "share learnt", "confident": "threshold learnt"}  # mass of the labels → what a title says of it
HPARAM = ", hparam"  # the hyperparameters of the other labels
NEGATIVES: dict[str, dict[str, Any]] = {
    "retrieved": {},
    "retrieved and in-batch": {"in_batch_negatives": True},
    "random": {"candidates": 1, "random_negatives": 100},
}


@dataclass(frozen=True)
class Hyperparameters:
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

    def replaced(self, **changed: Any) -> Hyperparameters:
        """The same with other values of some parameters."""
        return dataclasses.replace(self, params=dataclasses.replace(self.params, **changed))

    def to_dict(self) -> dict[str, Any]:
        """The parameters, plain values; the learning rate is None where tasks differ in it."""
        rates = set(self.rates.values()) or {self.params.learning_rate}
        return self.params.to_dict() | {"learning_rate": rates.pop() if len(rates) == 1 else None}


@dataclass(frozen=True)
class QueryArm:
    """One way of training.

    Attributes:
        name: in tables and figures.
        method: of labels, see `rnnreranker.labels`.
        hyperparameters: of its training.
        mass: "share" or "confident": how much leaves the positives is learnt, see `labels.learnt_mass`; None = not.
        taught: fingerprint of what the method reads beside the vectors; empty where it reads nothing else.
        of_method, of_labels: settings of the method and of labels that the arm has for itself.
        of_loss: settings of its loss that it has for itself.
    """

    name: str
    method: str
    hyperparameters: Hyperparameters
    mass: str | None = None
    taught: str = ""
    of_method: Mapping[str, Any] = field(default_factory=dict)
    of_labels: Mapping[str, Any] = field(default_factory=dict)
    of_loss: Mapping[str, Any] = field(default_factory=dict)

    def described(self, task: Task) -> list[Any]:
        """The method of labels, the parameters of the training on a task, what teaches, what a mass is learnt of."""
        learnt = [self.mass, sorted(task.known_of_validation)] if self.mass else []
        taught = [self.taught] if self.taught else []
        settings = {"method": self.of_method, "labels": self.of_labels, "loss": self.of_loss}
        own = [{name: dict(values) for name, values in settings.items()}] if any(settings.values()) else []
        return [self.method, self.hyperparameters.params_of(task).to_dict(), *taught, *learnt, *own]


def label_arms(
    coder: Hyperparameters,
    smoothing: Hyperparameters,
    methods: Sequence[Form] = SMOOTHING,
    other_side: bool = True,
    taught: Mapping[str, str] = MappingProxyType({}),
) -> list[QueryArm]:
    """CODER and smoothing methods, each with its own hyperparameters and with those of the other labels.

    Args:
        coder: chosen for hard labels.
        smoothing: chosen for evidence-based labels; where they equal `coder`, the arms of the other labels are the same
            and are left out.
        methods: of labels, in their written form, of this package or another one; with `mass=share` or
            `mass=confident` where the mass is learnt.
        other_side: False leaves the arms with the hyperparameters of the other labels out in any case.
        taught: method → fingerprint of what it reads beside the vectors: scores of a run, tokens.

    Raises:
        InputError: as `label_form`.
    """
    arms = [QueryArm(CODER, "hard", coder), *(_smoothing_arm(method, smoothing, taught) for method in methods)]
    if other_side and coder != smoothing:
        others = [QueryArm(CODER, "hard", smoothing), *(_smoothing_arm(method, coder, taught) for method in methods)]
        arms += [dataclasses.replace(arm, name=f"{arm.name}{HPARAM}") for arm in others]
    return arms


def label_form(form: Form) -> tuple[Written, ChosenLabeler]:
    """The written form of the labels of an arm, and the method that it names.

    Raises:
        InputError: no such method, settings that it does not have, values out of range; presets and sources of
            similarities, which a study does not take.
    """
    written = Written.read(form)
    method, _, mass = written.name.partition(":")
    if mass in LEARNT:
        raise InputError(f"{argument('methods', written.name)}: write {method}:mass={mass}")
    chosen = choose_labeler(written, "methods")
    strange = [name for name in (SOURCE, LABEL_PRESET) if name in written.params]
    if strange := strange + ([PRESET] if written.preset else []):
        raise InputError(f"{argument('methods', str(written))}: {strange[0]}: a study takes none; give settings")
    return written, chosen


def _smoothing_arm(form: Form, hyperparameters: Hyperparameters, taught: Mapping[str, str]) -> QueryArm:
    written, chosen = label_form(form)
    mass = chosen.label_params.mass if unlearnt(chosen.label_params) else None
    given = {name: value for name, value in written.params.items() if not (mass and name == "mass")}
    params, labels = chosen.params.to_dict(), chosen.label_params.to_dict()
    of_method = {name: params[name] for name in given if name in params}
    of_labels = {name: labels[name] for name in given if name not in params}
    learnt = f", {LEARNT[mass]}" if mass else ""
    name = f"{CODER} + {SHOWN.get(written.name, written.name)}{learnt}{settings_said(Written(written.name, given))}"
    return QueryArm(name, written.name, hyperparameters, mass, taught.get(written.name, ""), of_method, of_labels)


def settings_said(written: Written) -> str:
    """The settings of a written form as the title of an arm has them.

    >>> settings_said(Written.read("bs:alpha=0.2,label_scale=maxmin")), settings_said(Written("bs"))
    (', alpha=0.2,label_scale=maxmin', '')
    """
    settings = str(written).removeprefix(written.name).removeprefix(":")
    return f", {settings}" if settings else ""


def loss_arms(hyperparameters: Hyperparameters, losses: Sequence[Form] | None = None) -> list[QueryArm]:
    """Losses of many candidates with every kind of negatives (001, Figure 4); evidence for the multi-tier loss.

    losses: in their written form; None = all that there are.

    Raises:
        InputError: no such loss, or one of groups, settings that it does not have.
    """
    usable = [name for name, loss_class in methods("loss").items() if not issubclass(loss_class, GroupLoss)]
    arms = []
    for written in map(Written.read, usable if losses is None else losses):
        loss = choose("loss", written, of="losses")
        if loss.name not in usable:
            shown = argument("losses", str(written))
            raise InputError(f"{shown}: expected {', '.join(usable)}, which are compared with each other")
        params = loss.params.to_dict()
        of_loss = {name: params[name] for name in written.params}
        for negatives, settings in NEGATIVES.items():
            method = "evidence" if loss.name == "multi-tier" else "hard"
            own = hyperparameters.replaced(loss=loss.name, **settings)
            arms.append(QueryArm(f"{written}, {negatives}", method, own, of_loss=of_loss))
    return arms


def candidate_arms(hyperparameters: Hyperparameters, counts: Sequence[int]) -> list[QueryArm]:
    """CODER with N candidates a query, for every N (001, Figure 5)."""
    return [QueryArm(f"N = {count}", "hard", hyperparameters.replaced(candidates=count)) for count in counts]
