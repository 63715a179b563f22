"""Parameters of training: what the loss sees, how the optimiser steps, when it is looked at and when it stops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rnnreranker.settings import Params, setting


@dataclass(frozen=True)
class TrainParams(Params):
    """How a query encoder is trained; `preset("coder-tas-b")` has the values of the published CODER(TAS-B).

    The published learning rate and warm-up belong to half a million training queries; the defaults are for hundreds to
    thousands.

    Raises:
        InputError: values out of range, all of them in one message.

    >>> TrainParams(batch_size=0, clip=-1)
    Traceback (most recent call last):
    rnnreranker.errors.InputError: batch_size=0: expected an integer >= 1; clip=-1: expected a number > 0
    """

    section: ClassVar[str] = "train"

    loss: Literal["kl", "cross-entropy", "margin", "multi-tier"] = setting("kl", "list-wise KL, or another loss")
    margin: float = setting(1.0, "of the losses margin and multi-tier", above=0)
    candidates: int = setting(
        1000, "candidates of a training query; those with probability are always kept", at_least=1
    )
    random_negatives: int = setting(
        0, "documents of the whole index, drawn anew for every step, added to each query", at_least=0
    )
    in_batch_negatives: bool = setting(False, "the other queries' positives are candidates too")
    batch_size: int = setting(32, "queries a step and pass", at_least=1)
    accumulate: int = setting(1, "passes whose gradients are averaged before a step", at_least=1)
    epochs: float = setting(10.0, "passes over the training queries", above=0)
    max_steps: int = setting(0, "steps; 0 = by epochs", at_least=0)
    learning_rate: float = setting(1e-5, "of RAdam, at its highest", above=0)
    weight_decay: float = setting(1e-4, "decoupled; none on biases and LayerNorm", at_least=0)
    epsilon: float = setting(1e-8, "of RAdam", above=0)
    warmup: float = setting(0.1, "steps of linear warm-up; below 1 a share of all steps", at_least=0)
    schedule: Literal["linear", "plateau"] = setting(
        "linear", "after warm-up: linear decay, or constant and cut when the validation loss no longer falls"
    )
    final_ratio: float = setting(
        0.1, "linear: the last learning rate, as a share of the highest", at_least=0, at_most=1
    )
    plateau_factor: float = setting(0.707, "plateau: what the learning rate is multiplied by", at_least=0, at_most=1)
    plateau_patience: int = setting(8000, "plateau: steps without a better validation loss before a cut", at_least=1)
    plateau_threshold: float = setting(1e-3, "plateau: relative gain that counts as better", at_least=0)
    plateau_cooldown: int = setting(3000, "plateau: steps after a cut that are not counted", at_least=0)
    clip: float = setting(1.0, "largest norm of the gradient", above=0)
    dropout: float | None = setting(None, "in the encoder; none = as in its config.json", at_least=0, at_most=1)
    inverse_temperature: float | None = setting(
        None,
        "what scores are multiplied by at first; none = 1, or 20 where the encoder's vectors have length 1",
        above=0,
    )
    learn_temperature: bool = setting(True, "train the inverse temperature with the encoder")
    freeze_embeddings: bool = setting(False, "leave the token embeddings as they are: smaller and faster steps")
    frozen_layers: int = setting(0, "leave that many lowest layers, and the token embeddings, as they are", at_least=0)
    neutrality_weight: float = setting(
        0.0, "of the divergence from the documents' neutrality (--neutrality)", at_least=0
    )
    neutrality_cutoff: int = setting(100, "highest-scored candidates that it looks at", at_least=1)
    query_tokens: int | None = setting(None, "cut training queries there, special tokens included", at_least=1)
    evaluate_every: int = setting(0, "steps between validations; 0 = once an epoch", at_least=0)
    key_measure: Literal["loss", "RR@10", "nDCG@10"] = setting("nDCG@10", "of validation, for the best checkpoint")
    patience: int = setting(
        0, "validations without a better key measure before training stops; 0 = never stop early", at_least=0
    )
    validation_share: float = setting(
        0.1, "of the labelled queries, held out; not with --validation-labels", at_least=0, at_most=1
    )
    validation_queries: int = setting(10000, "validation queries at most, the first ones", at_least=1)
    seed: int = setting(42, "of order, dropout, negatives, new layers and the held-out queries", at_least=0)


TrainParams.presets = {
    "coder-tas-b": TrainParams(
        learning_rate=1.7306177116476083e-06,
        epsilon=1.28946630896042e-07,
        weight_decay=9.495145000681325e-05,
        warmup=9000.0,
        schedule="plateau",
        epochs=15.0,
        evaluate_every=2000,
        key_measure="RR@10",
        query_tokens=34,
    )
}
