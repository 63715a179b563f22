"""Parameters of training: what the loss sees, how the optimiser steps, when it is looked at and when it stops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import find, make_params, methods, names
from rnnreranker.base.preset_files import is_file_name, read_section
from rnnreranker.base.settings import Params, hints_of, plain, setting
from rnnreranker.base.written import Written
from rnnreranker.train.unread import check_read


@dataclass(frozen=True)
class TrainingParams(Params):
    """What a preset file says of a training stands in one section, with the loss in its written form."""

    section: ClassVar[str] = "train"
    of_loss: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # published preset → parameters of its loss

    loss: str = setting("kl", "what training lowers", one_of=lambda: names("loss"))

    @classmethod
    def of_section(cls, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `Params.of_section`; files that were written before have the parameters of the loss beside the others."""
        hints = hints_of(cls)
        beside = {name for loss in methods("loss").values() for name in hints_of(loss.Params)} - set(hints)
        return {name: value for name, value in _spread(content).items() if name not in beside}


@dataclass(frozen=True)
class TrainParams(TrainingParams):
    """How a query encoder is trained, whatever the loss; the presets have the values of published models.

    The published learning rates and warm-ups belong to half a million training queries; the defaults are for hundreds
    to thousands.

    Raises:
        InputError: values out of range, all of them in one message.

    >>> TrainParams(batch_size=0, clip=-1)
    Traceback (most recent call last):
    rnnreranker.base.errors.InputError: batch_size=0: expected an integer >= 1; clip=-1: expected a finite number > 0
    """

    candidates: int = setting(
        1000, "candidates of a training query; those with probability are always kept", at_least=1
    )
    random_negatives: int = setting(
        0, "documents of the whole index, drawn anew for every step, added to each query", at_least=0
    )
    in_batch_negatives: bool = setting(
        False, "the other queries' positives (of groups: all candidates) are candidates too", tunable=False
    )
    batch_size: int = setting(32, "queries a step and pass", at_least=1)
    accumulate: int = setting(1, "passes whose gradients are averaged before a step", at_least=1)
    epochs: float = setting(10.0, "passes over the training queries", above=0)
    max_steps: int = setting(0, "steps; 0 = by epochs", at_least=0)
    learning_rate: float = setting(1e-5, "at its highest", above=0)
    weight_decay: float = setting(1e-4, "decoupled; none on biases and LayerNorm", at_least=0)
    epsilon: float = setting(1e-8, "of RAdam", above=0)
    warmup: float = setting(0.1, "steps of linear warm-up; below 1 a share of all steps", at_least=0)
    refresh_every: int = setting(
        0, "steps after which candidates and labels are made again by the encoder as it then is; 0 = never", at_least=0
    )
    schedule: Literal["linear", "plateau"] = setting(
        "linear", "after warm-up: linear decay, or constant and cut when the validation loss no longer falls"
    )
    final_ratio: float = setting(
        0.1, "linear: the last learning rate, plateau: the lowest; as a share of the highest", at_least=0, at_most=1
    )
    plateau_factor: float = setting(
        0.707, "plateau: what the learning rate is multiplied by", at_least=0, at_most=0.999
    )
    plateau_patience: int = setting(
        8000,
        "plateau: patience in steps, validations without a better loss before the learning rate is cut",
        at_least=1,
    )
    plateau_threshold: float = setting(1e-3, "plateau: relative gain that counts as better", at_least=0)
    plateau_cooldown: int = setting(3000, "plateau: steps after a cut that are not counted", at_least=0)
    clip: float = setting(1.0, "largest norm of the gradient", above=0)
    dropout: float | None = setting(None, "in the encoder; none = as in its config.json", at_least=0, at_most=1)
    inverse_temperature: float | None = setting(
        None,
        "what scores are multiplied by at first; none = 1, or 20 where the encoder's vectors have length 1",
        above=0,
    )
    learn_temperature: bool = setting(True, "train the inverse temperature with the encoder", tunable=False)
    freeze_embeddings: bool = setting(
        False, "leave the token embeddings as they are: smaller and faster steps", tunable=False
    )
    frozen_layers: int = setting(0, "leave that many lowest layers, and the token embeddings, as they are", at_least=0)
    neutrality_weight: float = setting(
        0.0, "of the divergence from the documents' neutrality", at_least=0, tunable=False
    )
    neutrality_cutoff: int = setting(100, "highest-scored candidates that it looks at", at_least=1, tunable=False)
    query_tokens: int | None = setting(None, "cut training queries there, special tokens included", at_least=1)
    evaluate_every: int = setting(0, "steps between validations; 0 = once an epoch", at_least=0)
    key_measure: Literal["loss", "RR@10", "nDCG@10"] = setting("nDCG@10", "of validation, for the best checkpoint")
    patience: int = setting(
        0, "validations without a better key measure before training stops; 0 = never stop early", at_least=0
    )
    validation_share: float = setting(
        0.1,
        "of the labelled queries, held out where no validation queries are given",
        at_least=0,
        at_most=1,
        tunable=False,
    )
    validation_queries: int = setting(10000, "validation queries at most, the first ones", at_least=1, tunable=False)
    seed: int = setting(
        42, "of order, dropout, negatives, new layers and the held-out queries", at_least=0, tunable=False
    )


P = TypeVar("P", bound=TrainingParams)


def training_settings(
    values: Mapping[str, Any], preset: str | None = None, base: TrainParams | None = None
) -> tuple[TrainParams, Params]:
    """The settings of the training of a query encoder and those of its loss; see `settings_for`."""
    return settings_for(TrainParams, values, preset, base)


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


_CODER = TrainParams(  # 001, Table 1, to full length; the floor of the learning rate is that of the authors' program
    learning_rate=1.7306177116476083e-06,
    epsilon=1.28946630896042e-07,
    weight_decay=9.495145000681325e-05,
    warmup=9000.0,
    schedule="plateau",
    final_ratio=0.01,
    epochs=15.0,
    evaluate_every=2000,
    key_measure="RR@10",
    query_tokens=34,
    learn_temperature=False,  # 001, Eq. 4 has none; 000, Algorithm 1 learns T where labels are smoothed
)
_COCONDENSER = replace(_CODER, learning_rate=1.37e-06, warmup=12000.0, schedule="linear", final_ratio=0.1)
# Of TripClick's runs a name tells learning rate, warm-up, last share and best step. How long they went on is not
# published, so they end there; what else is needed is borrowed from 001, Table 1.
_TRIPCLICK = replace(
    _CODER, learning_rate=2.73e-06, warmup=29000.0, schedule="linear", final_ratio=0.33, max_steps=234000
)
TrainParams.presets = {
    "coder-tas-b": _CODER,
    "coder-tas-b-smooth": replace(_CODER, learn_temperature=True),
    "coder-cocondenser": _COCONDENSER,
    "coder-cocondenser-smooth": replace(_COCONDENSER, learn_temperature=True),
    "coder-tripclick": _TRIPCLICK,
    "coder-tripclick-smooth": replace(_TRIPCLICK, learn_temperature=True),
}
