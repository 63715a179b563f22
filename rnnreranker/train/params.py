"""The settings of every training: how the optimiser steps, when it validates and when it stops."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import find, make_params, methods, names
from rnnreranker.base.settings import Params, hints_of, in_order, is_file_name, plain, read_section, setting
from rnnreranker.base.written_form import Written
from rnnreranker.train.losses import BatchLoss, CosineLoss, Loss, PositivesLoss


def check_read(params: Any, loss: Loss, given: Collection[str]) -> None:
    """Refuse settings that were given to a training, and would be taken without effect.

    Args:
        params: of the training, with all its settings.
        loss: that they name, with its own.
        given: the names of settings that somebody wrote down; those of presets and defaults stay as they are.

    Raises:
        InputError: all that are not read, each with the reason.
    """
    faults = [
        f"{name}={getattr(params, name)}: expected none with {reason}"
        for name, reason in unread(params, loss).items()
        if name in given and getattr(params, name)
    ]
    if faults:
        raise InputError("; ".join(faults))


def unread(params: Any, loss: Loss) -> dict[str, str]:
    """Settings of a training that are not read, by its loss and its other settings → why; only those that it has.

    >>> from rnnreranker.train.models.groups import DualParams
    >>> from rnnreranker.train.losses import TripletLoss
    >>> list(unread(DualParams(), TripletLoss()))
    ['label_scale', 'in_batch_negatives']
    """
    named, reasons = f"the loss {loss.name}", {}
    if not isinstance(loss, CosineLoss) or isinstance(loss, PositivesLoss):
        reasons["label_scale"] = f"{named}, which reads targets, no labels by themselves"
    elif not loss.reads_targets():
        reasons["label_scale"] = "alpha=0, at which only hard labels count"
    if not loss.reads_targets():
        reasons["batch_teacher"] = f"{named}, which asks what is positive alone"
    if isinstance(loss, BatchLoss):
        reasons["in_batch_negatives"] = f"{named}, which takes the candidates of the whole batch by itself"
    if getattr(params, "negatives_from", "") == "in-batch":
        reason = "negatives_from=in-batch, which draws none and takes those of the whole batch"
        reasons |= dict.fromkeys(("group_size", "depth", "in_batch_negatives"), reason)
    if "teacher" in loss.needs and hasattr(params, "random_negatives"):
        reason = f"{named}, in which documents without a target take no part"
        reasons |= {"in_batch_negatives": reason, "random_negatives": reason}
    if getattr(params, "schedule", "plateau") != "plateau":
        of_plateau = [field.name for field in dataclasses.fields(params) if field.name.startswith("plateau_")]
        reasons |= dict.fromkeys(of_plateau, f"the schedule {params.schedule}, which ends by itself")
    if not getattr(params, "neutrality_weight", 1):
        reasons["neutrality_cutoff"] = "neutrality_weight=0, at which no divergence is computed"
    if getattr(params, "architecture", "") == "doc":
        reasons["lambda_q"] = "the architecture doc, whose queries are counts of words, which no training changes"
    return {name: reason for name, reason in reasons.items() if hasattr(params, name)}


Kind = Literal["run", "random", "mixed", "in-batch"]  # where the negatives of a group come from
LONGEST = 256  # tokens of a text where nothing else is said


@dataclass(frozen=True)
class TrainingParams(Params):
    """How any model is trained, whatever the loss; a subclass has defaults and settings of its own.

    What a preset file says of a training stands in one section, with the loss in its written form.
    """

    section: ClassVar[str] = "train"
    of_loss: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # published preset → parameters of its loss

    loss: str = setting("kl", "loss", one_of=lambda: names("loss"))
    batch_size: int = setting(32, "queries a step and pass", at_least=1)
    accumulate: int = setting(1, "passes whose gradients are averaged before a step", at_least=1)
    epochs: float = setting(10.0, "passes over the training queries", above=0)
    max_steps: int = setting(0, "steps; 0 = by epochs", at_least=0)
    learning_rate: float = setting(1e-5, "peak learning rate", above=0)
    weight_decay: float = setting(1e-4, "weight decay, decoupled; none on biases and LayerNorm", at_least=0)
    warmup: float = setting(0.1, "steps of linear warm-up; below 1 a share of all steps", at_least=0)
    clip: float = setting(1.0, "largest norm of the gradient", above=0)
    evaluate_every: int = setting(0, "steps between validations; 0 = once an epoch", at_least=0)
    patience: int = setting(
        0, "validations without a better key measure before training stops; 0 = never stop early", at_least=0
    )
    validation_share: float = setting(
        0.1,
        "share of the labelled queries held out where no validation queries are given",
        at_least=0,
        at_most=1,
        tunable=False,
    )
    seed: int = setting(
        42, "seed of order, dropout, negatives, new layers and held-out queries", at_least=0, tunable=False
    )

    @classmethod
    def of_section(cls, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `Params.of_section`; files that were written before have the parameters of the loss beside the others."""
        hints = hints_of(cls)
        beside = {name for loss in methods("loss").values() for name in hints_of(loss.Params)} - set(hints)
        return {name: value for name, value in _spread(content).items() if name not in beside}


@in_order
@dataclass(frozen=True)
class RankedParams(TrainingParams):
    """As `TrainingParams`, of a model that is validated by how it ranks candidates of queries."""

    key_measure: Literal["loss", "RR@10", "nDCG@10"] = setting(
        "nDCG@10", "validation measure that chooses the best checkpoint", before="patience"
    )
    validation_queries: int = setting(
        10000, "validation queries at most, the first ones", at_least=1, tunable=False, before="seed"
    )


def in_batch_setting() -> Any:
    """The field `in_batch_negatives` of models whose candidates may be those of a whole batch."""
    text = "in-batch negatives: the other queries' positives (of groups: all candidates) are candidates too"
    return setting(False, text, tunable=False)


def temperature_setting() -> Any:
    """The field `inverse_temperature` of models whose scores have one."""
    text = "factor of scores at first; none = 1, or 20 where the encoder's vectors have length 1"
    return setting(None, text, above=0)


def decay_setting() -> Any:
    """The field `decay` of models without a schedule of their own."""
    text = "linear decay of the learning rate to 0 after warm-up; no = it stays at its highest"
    return setting(True, text, tunable=False, before="clip")


def length_setting(default: int | None = None, before: str = "") -> Any:
    """The field `max_length` of models that cut all texts at one length."""
    text = f"tokens at which texts are cut; none = {LONGEST}, or the model's limit where it is lower"
    return setting(default, text, at_least=1, before=before)


P = TypeVar("P", bound=TrainingParams)


def settings_for(
    kind: type[P], values: Mapping[str, Any], preset: str | None = None, base: P | None = None
) -> tuple[P, Params]:
    """The settings of a training and those of its loss: `values`, before a preset, before `base` (the defaults).

    Args:
        kind: of settings: those of the model that is trained.
        values: fields of `kind` and of the loss, as in the section `train` of a preset file.
        preset: a published name, or a file.

    Raises:
        InputError: unknown names, parameters of another loss, settings that this loss does not read, values out of
            range, no such preset.
    """
    hints = hints_of(kind)
    params = kind.named(preset, base) if preset else base or kind()
    params = replace(params, **{name: plain(value, hints[name]) for name, value in values.items() if name in hints})
    own = hints_of(find("loss", params.loss).Params)
    if unknown := [name for name in values if name not in hints and name not in own]:
        near = "; ".join(f"{name}: {nearest(str(name), [*hints, *own])}" for name in unknown)
        raise InputError(f"not settings of training with the loss {params.loss}: {near}")
    kept = (
        _spread(read_section(preset, kind.section)[0])
        if preset and is_file_name(preset)
        else kind.of_loss.get(preset or "", {})
    )
    of_loss = loss_params(params.loss, {**kept, **values})
    check_read(params, find("loss", params.loss)(of_loss), values)
    return params, of_loss


def _spread(content: Mapping[str, Any]) -> dict[str, Any]:
    """A section of a preset file with the name of its loss, and the loss's settings beside the others.

    Raises:
        InputError: settings that the loss does not have, or that the section says twice.

    >>> _spread({"loss": {"triplet": {"margin": 0.3}}, "epochs": 2})
    {'loss': 'triplet', 'epochs': 2, 'margin': 0.3}
    """
    if not isinstance(form := content.get("loss"), str | Mapping) or not form:
        return dict(content)
    written = Written.read(form)
    if written.params:
        find("loss", written.name).Params.of(written.params, f"loss {written.name}")
    if twice := [name for name in written.params if name in content]:
        raise InputError(f"loss {written.name}: {twice[0]} twice; give it once")
    return {**content, "loss": written.name, **written.params}


def loss_params(loss: str, values: Mapping[str, Any]) -> Params:
    """The parameters of a loss: those of `values` that it has."""
    own = hints_of(find("loss", loss).Params)
    params: Params = make_params("loss", loss, {name: value for name, value in values.items() if name in own})
    return params


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
