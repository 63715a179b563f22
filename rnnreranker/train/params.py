"""Settings of trainings: optimiser, validation and stopping; query encoders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import find, names
from rnnreranker.base.settings import Params, check_names, hints_of, setting
from rnnreranker.base.written_form import Written
from rnnreranker.train.losses import Loss

Kind = Literal["run", "random", "mixed", "in-batch"]  # where the negatives of a group come from
PLATEAU = "plateau_factor plateau_patience plateau_threshold plateau_cooldown"
LONGEST = 256  # tokens of a text where nothing else is said


@dataclass(frozen=True)
class TrainingParams(Params):
    """Settings of any training; subclasses add settings and defaults."""

    section: ClassVar[str] = "train"

    loss: str = setting("kl", f"loss, in its written form: {', '.join(names('loss'))}")
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

    @property
    def ranking(self) -> Loss:
        """The loss; errors as `loss_of`."""
        return loss_of(self.loss)

    def described(self) -> dict[str, Any]:
        """Plain values by name, with the settings of the loss."""
        ranking = self.ranking
        return {**self.to_dict(), "loss": ranking.name, **ranking.params.to_dict()}


def loss_of(form: Form) -> Loss:
    """The loss of a written form. InputError: unknown loss or settings, values out of range."""
    written = Written.read(form)
    shown = argument("loss", str(written))
    if written.name not in names("loss"):
        raise InputError(f"{shown}: no such loss; {nearest(written.name, names('loss'))}")
    if written.preset:
        raise InputError(f"{shown}: a loss has no presets; give the preset to the model")
    kind = find("loss", written.name)
    return kind(kind.Params.of(written.params, shown))


def settings_for(kind: Any, values: Mapping[str, Any], preset: str | None = None, base: Any = None) -> Any:
    """Settings of a training: `values`, else those of a preset (a name or a file), else `base` (the defaults).

    kind: settings of the trained model.

    Raises:
        InputError: settings that the loss ignores, values out of range, unknown loss or preset.
    """
    params = kind.named(preset, base) if preset else base or kind()
    params = replace(params, **check_names(values, hints_of(kind)))
    for name, reason in unread(params, params.ranking).items():
        if name in values and getattr(params, name):
            raise InputError(f"{name}={getattr(params, name)}: expected none with {reason}")
    return params


def unread(params: Any, loss: Loss) -> dict[str, str]:
    """Settings that the loss or another setting makes ineffective → the reason.

    >>> from rnnreranker.train.models import DualParams
    >>> from rnnreranker.train.losses import TripletLoss
    >>> sorted(unread(DualParams(), TripletLoss()))
    ['in_batch_negatives', 'inverse_temperature', 'label_scale']
    """
    named, own = f"the loss {loss.name}", params.to_dict()
    without = f"{named}, in which documents without a target take no part"
    drawn = "negatives_from=in-batch, which draws none and takes those of the whole batch"
    cases = [  # whether it holds, what is not read then, and why: the first counts
        (not loss.of_cosines or not loss.targets, "label_scale", f"{named}, which reads targets, no labels alone"),
        (not loss.reads_targets(), "label_scale", "alpha=0, at which only hard labels count"),
        (not loss.reads_targets(), "batch_teacher", f"{named}, which asks what is positive alone"),
        (loss.over_batch, "in_batch_negatives contrast", f"{named}, which is over the whole batch itself"),
        (own.get("negatives_from") == "in-batch", "group_size depth in_batch_negatives", drawn),
        ("teacher" in loss.needs and "random_negatives" in own, "in_batch_negatives random_negatives", without),
        (loss.of_cosines, "inverse_temperature", f"{named}, which is of the cosines themselves"),
        (own.get("schedule") == "linear", PLATEAU, "the schedule linear, which ends by itself"),
        (not own.get("neutrality_weight"), "neutrality_cutoff", "neutrality_weight=0: no divergence is computed"),
        (own.get("architecture") == "doc", "lambda_q query_regularizer", "the architecture doc, without a query model"),
        (own.get("architecture") == "max", "query_weights", "the architecture max, whose queries the model weighs"),
    ]
    reasons = [{name: reason for name in unread.split() if holds and name in own} for holds, unread, reason in cases]
    return {name: reason for one in reversed(reasons) for name, reason in one.items()}


@dataclass(frozen=True)
class RankedParams(TrainingParams):
    key_measure: Literal["loss", "RR@10", "nDCG@10"] = setting(
        "nDCG@10", "validation measure that chooses the best checkpoint"
    )
    validation_queries: int = setting(10000, "validation queries at most, the first ones", at_least=1, tunable=False)


def in_batch_setting() -> Any:
    text = "in-batch negatives: the other queries' positives (of groups: all candidates) are candidates too"
    return setting(False, text, tunable=False)


def temperature_setting() -> Any:
    text = "factor of scores at first; none = 1, or 20 where the encoder's vectors have length 1"
    return setting(None, text, above=0)


def decay_setting() -> Any:
    text = "linear decay of the learning rate to 0 after warm-up; no = it stays at its highest"
    return setting(True, text, tunable=False)


def length_setting() -> Any:
    text = f"tokens at which texts are cut; none = {LONGEST}, or the model's limit where it is lower"
    return setting(None, text, at_least=1)


@dataclass(frozen=True)
class TextParams(TrainingParams):
    """Settings of a training on single texts."""

    key_measure: ClassVar[str] = "loss"

    epochs: float = 3.0
    learning_rate: float = 5e-5
    weight_decay: float = 0.01
    decay: bool = decay_setting()
    max_length: int | None = length_setting()

    def described(self) -> dict[str, Any]:
        return {name: value for name, value in self.to_dict().items() if name != "loss"}


@dataclass(frozen=True)
class GroupParams(RankedParams):
    """Settings of a training on groups of a positive and drawn negatives."""

    loss: str = "lce"
    batch_size: int = 8
    epochs: float = 2.0
    weight_decay: float = 0.01
    group_size: int = setting(8, "candidates a query and step: a positive, the others negatives", at_least=1)
    depth: int = setting(100, "first candidates of a query that negatives are drawn from", at_least=1)
    decay: bool = decay_setting()
    validation_candidates: int = setting(
        100,
        "first candidates of a validation query that are scored, its positives besides",
        at_least=1,
        tunable=False,
    )

    @property
    def of_batch(self) -> bool:
        """Whether documents of other groups of a batch are negatives."""
        return self.ranking.over_batch or bool(getattr(self, "in_batch_negatives", False)) or self.kind == "in-batch"

    @property
    def kind(self) -> Kind:
        """Source of a group's negatives."""
        return getattr(self, "negatives_from", "run")


@dataclass(frozen=True)
class OneLengthParams(GroupParams):
    max_length: int | None = length_setting()


@dataclass(frozen=True)
class TrainParams(RankedParams):
    """Settings of a query encoder; the presets have the values of published models.

    Published learning rates and warm-ups suit half a million queries; the defaults suit hundreds to thousands.

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
    in_batch_negatives: bool = in_batch_setting()
    epsilon: float = setting(1e-8, "epsilon of RAdam", above=0)
    refresh_every: int = setting(
        0,
        "steps after which candidates and labels are made again by the encoder as it then is; 0 = never",
        at_least=0,
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
    dropout: float | None = setting(None, "dropout of the encoder; none = as in its config.json", at_least=0, at_most=1)
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
