"""Settings of trainings, with their presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import yaml

from rnnreranker.base.errors import InputError, argument, refuse
from rnnreranker.base.method import choose, names
from rnnreranker.base.settings import Params, check_names, hints_of, setting
from rnnreranker.train.losses import Loss

LabelScale = Literal["scores", "cosine", "maxmin", "targets"]
Similarity = Literal["maxsim", "l2"]
LONGEST = 256  # tokens of a text where nothing else is said


@dataclass(frozen=True)
class TrainingParams(Params):
    """Settings of any training; subclasses add settings and defaults."""

    section: ClassVar[str] = "train"

    batch_size: int = setting(32, "queries a step", at_least=1)
    epochs: float = setting(10.0, "passes over the training queries", above=0)
    max_steps: int = setting(0, "steps; 0 = by epochs", at_least=0)
    learning_rate: float = setting(1e-5, "peak learning rate", above=0)
    weight_decay: float = setting(1e-4, "weight decay, decoupled; none on biases and LayerNorm", at_least=0)
    warmup: float = setting(0.1, "steps of linear warm-up; below 1 a share of all steps", at_least=0)
    clip: float = setting(1.0, "largest norm of the gradient", above=0)
    evaluate_every: int = setting(0, "steps between validations; 0 = once an epoch", at_least=0)
    patience: int = setting(0, "validations without a better key measure before training stops; 0 = never", at_least=0)
    validation_share: float = setting(
        0.1, "share of the labelled queries held out where no validation queries are given", at_least=0, at_most=1
    )
    seed: int = setting(42, "seed of order, dropout, negatives, new layers and held-out queries", at_least=0)

    def described(self) -> dict[str, Any]:
        """Plain values by name, with the settings of the loss."""
        return self.to_dict()


@dataclass(frozen=True)
class RankedParams(TrainingParams):
    """Settings of a training on candidates of queries."""

    loss: str = setting("kl", f"loss, in its written form: {', '.join(names('loss'))}")
    key_measure: Literal["loss", "RR@10", "nDCG@10"] = setting(
        "nDCG@10", "validation measure that chooses the best checkpoint"
    )
    validation_queries: int = setting(10000, "validation queries at most, the first ones", at_least=1)

    @property
    def ranking(self) -> Loss:
        """The loss. InputError: unknown loss or settings, values out of range."""
        chosen = choose("loss", self.loss, "loss")
        return chosen.method(chosen.params)

    def described(self) -> dict[str, Any]:
        ranking = self.ranking
        return {**self.to_dict(), "loss": ranking.name, **ranking.params.to_dict()}


def settings_for(kind: Any, values: Mapping[str, Any], preset: str | None = None, base: Any = None) -> Any:
    """Settings of a training: `values`, else those of a preset (a name or a file), else `base` (the defaults).

    kind: settings of the trained model.

    Raises:
        InputError: settings that the loss or another setting makes ineffective, values out of range, unknown names.
    """
    params = kind.named(preset, base) if preset else base or kind()
    params = replace(params, **check_names(values, hints_of(kind)))
    own = params.to_dict()
    if "loss" not in own:
        return params
    loss: Loss = params.ranking
    named = f"the loss {loss.name}"
    for holds, unread, reason in (
        (not loss.of_cosines or not loss.targets, "label_scale", f"{named}, which reads no labels in [0, 1]"),
        (not loss.targets, "batch_teacher", f"{named}, which asks what is positive alone"),
        (loss.over_batch, "in_batch_negatives", f"{named}, which is over the whole batch itself"),
        (
            loss.needs and "random_negatives" in own,
            "in_batch_negatives random_negatives",
            f"{named}, in which documents without a target take no part",
        ),
        (loss.of_cosines, "inverse_temperature", f"{named}, which is of the cosines themselves"),
        (
            own.get("schedule") == "linear",
            "plateau_patience",
            "the schedule linear, which ends by itself",
        ),
        (not own.get("neutrality_weight"), "neutrality_cutoff", "neutrality_weight=0: no divergence is computed"),
        (own.get("architecture") == "doc", "lambda_q", "the architecture doc, without a query model"),
    ):
        for name in unread.split():
            if holds and name in values and own[name]:
                raise InputError(f"{name}={own[name]}: expected none with {reason}")
    refuse(
        (
            loss.of_cosines and "label_scale" not in own,
            f"loss={loss.name}: expected another; it is of cosines, for {argument('model', 'dual')}",
        ),
        (
            own.get("group_size") == 1 and not params.of_batch,
            f"group_size=1: expected an integer >= 2, as {named} compares candidates",
        ),
        (
            own.get("batch_teacher") and not own["in_batch_negatives"],
            "batch_teacher=True: expected with in_batch_negatives, whose documents it is asked about",
        ),
        (
            kind is CrossParams and loss.over_batch,
            f"{named}: takes the candidates of other queries, with which a cross-encoder would have to read every "
            f"query; give {argument('loss', 'lce')}",
        ),
    )
    return params


in_batch_setting = partial(
    setting, False, "in-batch negatives: the other queries' positives (of groups: all candidates) are candidates too"
)
temperature_setting = partial(
    setting, None, "factor of scores at first; none = 1, or 20 where the encoder's vectors have length 1", above=0
)
decay_setting = partial(
    setting, True, "linear decay of the learning rate to 0 after warm-up; no = it stays at its highest"
)
length_setting = partial(
    setting,
    None,
    f"tokens at which texts are cut; none = {LONGEST}, or the model's limit where it is lower",
    at_least=1,
)


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
    plateau_patience: int = setting(
        8000,
        "patience in steps before the learning rate is cut (plateau)",
        at_least=1,
    )
    dropout: float | None = setting(None, "dropout of the encoder; none = as in its config.json", at_least=0, at_most=1)
    inverse_temperature: float | None = temperature_setting()
    learn_temperature: bool = setting(True, "inverse temperature trained with the encoder")
    frozen_layers: int = setting(0, "lowest layers left as they are, and the token embeddings", at_least=0)
    neutrality_weight: float = setting(0.0, "weight of the divergence from the documents' neutrality", at_least=0)
    neutrality_cutoff: int = setting(100, "highest-scored candidates that it looks at", at_least=1)
    query_tokens: int | None = setting(
        None, "tokens at which training and validation queries are cut, special ones included", at_least=1
    )


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
        100, "first candidates of a validation query that are scored, its positives besides", at_least=1
    )

    @property
    def of_batch(self) -> bool:
        """Whether documents of other groups of a batch are negatives."""
        return self.ranking.over_batch or getattr(self, "in_batch_negatives", False)

    @property
    def at_random(self) -> bool:
        """Whether negatives are drawn from the collection."""
        return getattr(self, "negatives_from", "") == "random"


@dataclass(frozen=True)
class OneLengthParams(GroupParams):
    max_length: int | None = length_setting()


@dataclass(frozen=True)
class DualParams(OneLengthParams):
    """Settings of a dual encoder; the presets have the length, loss and alpha of paper 004, which states no other
    setting.

    `f-ebr` is ours, for `--encoder none`: the paper only cites Huang et al. (KDD 2020), whose loss and two towers we
    know from memory.
    """

    loss: str = "distance"
    group_size: int = 4
    batch_size: int = 16
    epochs: float = 3.0
    learning_rate: float = 2e-5
    max_length: int | None = 64
    towers: Literal["shared", "separate"] = setting(
        "shared", "towers: one encoder of queries and documents, or one of each, that begin alike"
    )
    negatives_from: Literal["run", "random"] = setting(
        "run",
        "source of a group's negatives: run, the first `depth` candidates; random, `depth` documents of the "
        "collection, drawn for the query",
    )
    in_batch_negatives: bool = in_batch_setting()
    inverse_temperature: float | None = temperature_setting()
    label_scale: LabelScale = setting(
        "scores",
        "scale of labels in [0, 1], for the loss distance: scores that are cut, (1 + score) / 2, from the lowest score "
        "of a query to its highest, or targets over the largest",
    )

    ours: ClassVar[frozenset[str]] = frozenset({"f-ebr"})


@dataclass(frozen=True)
class CrossParams(OneLengthParams):
    """Settings of a cross-encoder."""


@dataclass(frozen=True)
class SparseParams(OneLengthParams):
    """Settings of a sparse encoder; the presets have the values of published SPLADE models."""

    loss: str = "info-nce"
    group_size: int = 2
    batch_size: int = 32
    epochs: float = 3.0
    learning_rate: float = 2e-5
    architecture: Literal["max", "doc"] = setting(
        "max", "SPLADE-max, or SPLADE-doc, whose queries are their words, without a model"
    )
    lambda_q: float = setting(3e-4, "weight of the regularisation of queries; doc has none", at_least=0)
    lambda_d: float = setting(1e-4, "weight of the FLOPS of documents", at_least=0)
    regularizer_warmup: float = setting(
        1 / 3, "steps of quadratic warm-up of the regularisation; below 1 a share of all steps", at_least=0
    )


@dataclass(frozen=True)
class LateParams(GroupParams):
    """Settings of a late-interaction encoder; the presets have the values of paper 002 and of its program."""

    loss: str = "info-nce"
    group_size: int = 2
    batch_size: int = 32
    epochs: float = 3.0
    similarity: Similarity = setting(
        "maxsim",
        "similarity in the loss: inner products, or minus squared distances, never below that to zeros",
    )
    in_batch_negatives: bool = in_batch_setting()
    batch_teacher: bool = setting(
        False,
        "with in-batch negatives, the teacher that made the labels scores all documents of a batch, by the tokens of "
        "the index; no = a document has what the labels give it, 0 where they do not know it",
    )
    query_length: int | None = setting(
        None, "tokens at which queries are cut, and to which they are expanded; none = the model's own", at_least=1
    )
    document_length: int | None = setting(None, "tokens at which documents are cut; none = the model's own", at_least=1)
    dimension: int | None = setting(
        None, "numbers of a token, where the training begins with a transformer; none = 128", at_least=1
    )


@dataclass(frozen=True)
class TextParams(TrainingParams):
    """Settings of a training on single texts."""

    key_measure: ClassVar[str] = "loss"

    epochs: float = 3.0
    learning_rate: float = 5e-5
    weight_decay: float = 0.01
    decay: bool = decay_setting()
    max_length: int | None = length_setting()


@dataclass(frozen=True)
class MaskedParams(TextParams):
    """Settings of a masked language model; a new one has BERT's shape with four of its twelve layers."""

    epochs: float = 10.0
    learning_rate: float = 1e-4
    mask_share: float = setting(0.15, "share of a text's tokens that are masked", above=0, at_most=0.9)
    layers: int = setting(4, "of a new model", at_least=1)
    hidden_size: int = setting(768, "hidden size of a new model", at_least=1)
    heads: int = setting(12, "attention heads of a new model", at_least=1)
    vocabulary: int = setting(
        21128,
        "tokens of a new model's vocabulary, all characters before frequent words",
        at_least=6,
    )


PRESETS = yaml.safe_load(Path(__file__).with_name("presets.yaml").read_text(encoding="utf-8"))
for _kind in (TrainParams, DualParams, CrossParams, SparseParams, LateParams):
    _kind.presets = {name: _kind(**values) for name, values in PRESETS[_kind.__name__].items()}
