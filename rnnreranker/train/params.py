"""Parameters of training: what the loss sees, how the optimiser steps, when it is looked at and when it stops."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from rnnreranker.errors import InputError, nearest


def _setting(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"help": meaning})


@dataclass(frozen=True)
class TrainParams:
    """How a query encoder is trained; `preset("coder-tas-b")` has the values of the published CODER(TAS-B).

    The published learning rate and warm-up belong to half a million training queries; the defaults are for hundreds to
    thousands.

    Raises:
        InputError: values out of range, all of them in one message.

    >>> TrainParams(batch_size=0, clip=-1)
    Traceback (most recent call last):
    rnnreranker.errors.InputError: batch_size=0: expected an integer >= 1; clip=-1: expected a number > 0
    """

    loss: Literal["kl", "cross-entropy", "margin", "multi-tier"] = _setting("kl", "list-wise KL, or another loss")
    margin: float = _setting(1.0, "of the losses margin and multi-tier")
    candidates: int = _setting(1000, "candidates of a training query; those with probability are always kept")
    random_negatives: int = _setting(0, "documents of the whole index, drawn anew for every step, added to each query")
    in_batch_negatives: bool = _setting(False, "the other queries' positives are candidates too")
    batch_size: int = _setting(32, "queries a step and pass")
    accumulate: int = _setting(1, "passes whose gradients are averaged before a step")
    epochs: float = _setting(10.0, "passes over the training queries")
    max_steps: int = _setting(0, "steps; 0 = by epochs")
    learning_rate: float = _setting(1e-5, "of RAdam, at its highest")
    weight_decay: float = _setting(1e-4, "decoupled; none on biases and LayerNorm")
    epsilon: float = _setting(1e-8, "of RAdam")
    warmup: float = _setting(0.1, "steps of linear warm-up; below 1 a share of all steps")
    schedule: Literal["linear", "plateau"] = _setting(
        "linear", "after warm-up: linear decay, or constant and cut when the validation loss no longer falls"
    )
    final_ratio: float = _setting(0.1, "linear: the last learning rate, as a share of the highest")
    plateau_factor: float = _setting(0.707, "plateau: what the learning rate is multiplied by")
    plateau_patience: int = _setting(8000, "plateau: steps without a better validation loss before a cut")
    plateau_threshold: float = _setting(1e-3, "plateau: relative gain that counts as better")
    plateau_cooldown: int = _setting(3000, "plateau: steps after a cut that are not counted")
    clip: float = _setting(1.0, "largest norm of the gradient")
    dropout: float | None = _setting(None, "in the encoder; none = as in its config.json")
    inverse_temperature: float | None = _setting(
        None, "what scores are multiplied by at first; none = 1, or 20 where the encoder's vectors have length 1"
    )
    learn_temperature: bool = _setting(True, "train the inverse temperature with the encoder")
    freeze_embeddings: bool = _setting(False, "leave the token embeddings as they are: smaller and faster steps")
    frozen_layers: int = _setting(0, "leave that many lowest layers, and the token embeddings, as they are")
    neutrality_weight: float = _setting(0.0, "of the divergence from the documents' neutrality (--neutrality)")
    neutrality_cutoff: int = _setting(100, "highest-scored candidates that it looks at")
    query_tokens: int | None = _setting(None, "cut training queries there, special tokens included")
    evaluate_every: int = _setting(0, "steps between validations; 0 = once an epoch")
    key_measure: Literal["loss", "RR@10", "nDCG@10"] = _setting("nDCG@10", "of validation, for the best checkpoint")
    patience: int = _setting(0, "validations without a better key measure before training stops; 0 = never stop early")
    validation_share: float = _setting(0.1, "of the labelled queries, held out; not with --validation-labels")
    validation_queries: int = _setting(10000, "validation queries at most, the first ones")
    seed: int = _setting(42, "of order, dropout, negatives, new layers and the held-out queries")

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        problems = []
        for name, hint in hints.items():
            value = getattr(self, name)
            words = get_args(hint)
            if words and all(isinstance(word, str) for word in words) and value not in words:
                problems.append(f"{name}={value}: expected one of {', '.join(words)}")
        whole = (
            "neutrality_cutoff",
            "candidates",
            "batch_size",
            "accumulate",
            "plateau_patience",
            "query_tokens",
            "validation_queries",
        )
        from_zero = (
            "random_negatives",
            "max_steps",
            "evaluate_every",
            "patience",
            "plateau_cooldown",
            "seed",
            "frozen_layers",
        )
        above = ("margin", "epochs", "learning_rate", "epsilon", "clip", "inverse_temperature")
        shares = ("final_ratio", "plateau_factor", "validation_share", "dropout")
        for names, ok, expected in (
            (whole, lambda v: isinstance(v, int) and v >= 1, "an integer >= 1"),
            (from_zero, lambda v: isinstance(v, int) and v >= 0, "an integer >= 0"),
            (above, lambda v: 0 < v < math.inf, "a number > 0"),
            (shares, lambda v: 0 <= v <= 1, "a number in [0, 1]"),
            (
                ("weight_decay", "neutrality_weight", "warmup", "plateau_threshold"),
                lambda v: 0 <= v < math.inf,
                "a number >= 0",
            ),
        ):
            for name in names:
                value = getattr(self, name)
                if value is None and type(None) in get_args(hints[name]):
                    continue
                if isinstance(value, bool) or not isinstance(value, (int, float)) or not ok(value):
                    problems.append(f"{name}={value}: expected {expected}")
        if problems:
            raise InputError("; ".join(problems))

    @classmethod
    def preset(cls, name: str) -> TrainParams:
        """The parameters of a published model.

        Raises:
            InputError: no preset of that name.
        """
        if name not in PRESETS:
            raise InputError(f"preset {name}: no such training preset; {nearest(name, PRESETS)}")
        return cls(**PRESETS[name])

    @classmethod
    def from_yaml(cls, path: str | Path) -> TrainParams:
        """The parameters of a YAML file, or of its section `train`; see `rnn.preset_file.read_settings`.

        Raises:
            InputError: no such file, not YAML, unknown keys (with the nearest names), values out of range.
        """
        from rnnreranker.rnn.preset_file import read_settings

        return read_settings(path, cls, "train")

    def to_dict(self) -> dict[str, Any]:
        """Every field with its value."""
        return asdict(self)


PRESETS: dict[str, dict[str, Any]] = {
    "coder-tas-b": {
        "learning_rate": 1.7306177116476083e-06,
        "epsilon": 1.28946630896042e-07,
        "weight_decay": 9.495145000681325e-05,
        "warmup": 9000.0,
        "schedule": "plateau",
        "epochs": 15.0,
        "evaluate_every": 2000,
        "key_measure": "RR@10",
        "query_tokens": 34,
    }
}
