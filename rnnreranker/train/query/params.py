"""Parameters of the training of query encoders: what the loss sees, how the optimiser steps; the published ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from rnnreranker.base.settings import Params, in_order, setting
from rnnreranker.train.params import RankedParams, in_batch_setting, settings_for, temperature_setting


@in_order
@dataclass(frozen=True)
class TrainParams(RankedParams):
    """How a query encoder is trained, whatever the loss; the presets have the values of published models.

    The published learning rates and warm-ups belong to half a million training queries; the defaults are for hundreds
    to thousands.

    >>> TrainParams(batch_size=0, clip=-1)
    Traceback (most recent call last):
    rnnreranker.base.errors.InputError: batch_size=0: expected an integer >= 1; clip=-1: expected a finite number > 0
    """

    candidates: int = setting(
        1000, "candidates of a training query; those with probability are always kept", at_least=1, before="batch_size"
    )
    random_negatives: int = setting(
        0, "documents of the whole index, drawn anew for every step, added to each query", at_least=0
    )
    in_batch_negatives: bool = in_batch_setting()
    epsilon: float = setting(1e-8, "epsilon of RAdam", above=0, before="warmup")
    refresh_every: int = setting(
        0,
        "steps after which candidates and labels are made again by the encoder as it then is; 0 = never",
        at_least=0,
        before="clip",
    )
    schedule: Literal["linear", "plateau"] = setting(
        "linear", "schedule after warm-up: linear decay, or constant and cut when the validation loss no longer falls"
    )
    final_ratio: float = setting(
        0.1, "last (linear) or lowest (plateau) learning rate, as a share of the peak", at_least=0, at_most=1
    )
    plateau_factor: float = setting(0.707, "factor of the learning rate at a cut (plateau)", at_least=0, at_most=0.999)
    plateau_patience: int = setting(
        8000,
        "patience in validations before the learning rate is cut (plateau)",
        at_least=1,
    )
    plateau_threshold: float = setting(1e-3, "relative gain that counts as better (plateau)", at_least=0)
    plateau_cooldown: int = setting(3000, "steps after a cut that are not counted (plateau)", at_least=0)
    dropout: float | None = setting(
        None, "dropout of the encoder; none = as in its config.json", at_least=0, at_most=1, before="evaluate_every"
    )
    inverse_temperature: float | None = temperature_setting()
    learn_temperature: bool = setting(True, "inverse temperature trained with the encoder", tunable=False)
    freeze_embeddings: bool = setting(
        False, "token embeddings left as they are: smaller and faster steps", tunable=False
    )
    frozen_layers: int = setting(0, "lowest layers left as they are, and the token embeddings", at_least=0)
    neutrality_weight: float = setting(
        0.0, "weight of the divergence from the documents' neutrality", at_least=0, tunable=False
    )
    neutrality_cutoff: int = setting(100, "highest-scored candidates that it looks at", at_least=1, tunable=False)
    query_tokens: int | None = setting(
        None, "tokens at which training queries are cut, special tokens included", at_least=1
    )


def training_settings(
    values: Mapping[str, Any], preset: str | None = None, base: TrainParams | None = None
) -> tuple[TrainParams, Params]:
    """The settings of the training of a query encoder and those of its loss; see `settings_for`."""
    return settings_for(TrainParams, values, preset, base)


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
