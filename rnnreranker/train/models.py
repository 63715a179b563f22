"""The kinds of trained models, with their settings and presets."""

from __future__ import annotations

import importlib
from abc import ABC
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rnnreranker.base import settings
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.process.phases import phase
from rnnreranker.base.settings import setting
from rnnreranker.train.params import (
    GroupParams,
    OneLengthParams,
    TextParams,
    TrainParams,
    in_batch_setting,
    temperature_setting,
)
from rnnreranker.train.request import NOTHING, Trained

if TYPE_CHECKING:
    from rnnreranker.train.request import Start, TrainRequest

SHAPE = ("layers", "hidden_size", "heads", "vocabulary")  # settings of a new model alone
TEXTS = frozenset({"documents", "fields"})
LABELLED = frozenset(
    {"labels", "topics", "validation_labels", "validation_run", "validation_qrels", "validation_topics"}
)


class TrainedModel(ABC):
    """A kind of model that `python -m rnnreranker.train --model NAME` trains.

    Attributes:
        loads, learns: module:name of the function that reads the inputs, and of the `trainer.Learner`.
        reads: arguments of the request that not every model reads.
        part: of an index; its encoder is the default start.
        trains: kind of encoder that results; "" = none that makes a part.
        encoder_settings: settings of `EncoderParams` that the training takes.
        cosines: whether a loss of cosines can train it.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"topics", "texts"})
    Params: ClassVar[type[settings.Params]]  # a subclass of TrainingParams
    loads: ClassVar[str] = ""
    learns: ClassVar[str] = ""
    reads: ClassVar[frozenset[str]] = LABELLED
    part: ClassVar[str] = "dense"
    trains: ClassVar[str] = ""
    encoder_settings: ClassVar[frozenset[str]] = frozenset()
    cosines: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = ("accelerate",)

    def train(self, request: TrainRequest, params: Any, device: str) -> Trained:
        self.check(request, params)
        with phase("reading the inputs"):
            inputs = _named(self.loads)(request, params)
        how = request.checkpoints, device, request.on_validation
        return self.train_on(inputs, request.start, request.output, params, *how)

    def train_on(
        self,
        inputs: Any,
        start: Start,
        output: str | Path,
        params: Any,
        checkpoints: bool = True,
        device: str = "cpu",
        on_validation: Callable[[int, dict[str, float]], None] | None = None,
    ) -> Trained:
        """Train on the result of `loads`, and write the folder `output`; OUTPUT.checkpoints has checkpoints meanwhile.

        Raises:
            InputError: an unsuitable model, checkpoints of another training, a loss that is not finite.
            MissingDependencyError: a package of training is missing.
        """
        for package in self.packages:
            require(package, "training", "'rnnreranker[train]'")
        with phase("importing torch and transformers", "imports"):
            import transformers

            from rnnreranker.train.trainer import fit
        transformers.set_seed(params.seed)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        with phase("loading the model"):
            learner = _named(self.learns)(start, params, inputs, device)
        return fit(learner, self.name, Path(output), checkpoints, device, on_validation)

    def check(self, request: TrainRequest, params: Any) -> None:
        """Check settings that exclude each other. InputError: the first of them."""
        for wrong, problem in self.conflicts(request, params):
            if wrong:
                raise InputError(problem)

    def conflicts(self, request: TrainRequest, params: Any) -> Iterator[tuple[bool, str]]:
        """Whether settings exclude each other, and the message."""
        loss, name = params.ranking, argument("model", self.name)
        wanted = f"expected another with {name}; it is of cosines, for {argument('model', 'dual')}"
        yield loss.of_cosines and not self.cosines, f"loss={loss.name}: {wanted}"


def _named(path: str) -> Any:
    """An attribute of a module of this folder; path: module:name."""
    module, _, name = path.partition(":")
    with phase("importing torch and transformers", "imports"):
        return getattr(importlib.import_module(f"rnnreranker.train.{module}"), name)


class QueryModel(TrainedModel):
    """A query encoder against fixed document vectors and many candidates a query (CODER), or a scorer on top of it."""

    name = "query"
    trains = "encoder"
    needs = frozenset({"topics", "vectors"})
    Params = TrainParams
    loads, learns = "samples:load_inputs", "coder:CoderLearner"
    reads = LABELLED | {"other_index", "neutrality", "scorer", "on_validation"}
    encoder_settings = frozenset({"pooling", "normalize"})


class GroupModel(TrainedModel):
    """A model that is trained on groups of texts."""

    loads = "groups:load_groups"
    reads = LABELLED | TEXTS | {"negatives"}
    packages = ("accelerate", "sentence_transformers")

    def conflicts(self, request: TrainRequest, params: Any) -> Iterator[tuple[bool, str]]:
        yield from super().conflicts(request, params)
        named = f"the loss {params.ranking.name} compares a positive with the negatives of its group"
        alone = params.group_size < 2 and not params.of_batch
        yield alone, f"group_size={params.group_size}: expected an integer >= 2, as {named}"


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
        "shared", "towers: one encoder of queries and documents, or one of each, that begin alike", tunable=False
    )
    negatives_from: Literal["run", "random", "mixed", "in-batch"] = setting(
        "run",
        "source of a group's negatives: run, the first `depth` candidates; random, `depth` documents of the "
        "collection, drawn for the query; mixed, as many of each; in-batch, none are drawn whatever the group_size: "
        "those of the batch's other queries",
        tunable=False,
    )
    in_batch_negatives: bool = in_batch_setting()
    inverse_temperature: float | None = temperature_setting()
    label_scale: Literal["scores", "cosine", "maxmin", "targets"] = setting(
        "scores",
        "scale of labels in [0, 1], for the loss distance: scores that are cut, (1 + score) / 2, from the lowest score "
        "of a query to its highest, or targets over the largest",
        tunable=False,
    )

    ours: ClassVar[frozenset[str]] = frozenset({"f-ebr"})


DualParams.presets = {
    "le-none": DualParams(loss="distance:alpha=0"),  # SBERT with the paper's loss
    "le-bs": DualParams(loss="distance:alpha=1"),  # SQuAD, and every cold start
    "le-bs-nq": DualParams(loss="distance:alpha=0.2"),
    "f-ebr": DualParams(loss="triplet", towers="separate", learning_rate=1e-2, epochs=10.0),
}


class Dual(GroupModel):
    """A dual encoder (paper 004, Section 3.4): one or two towers, mean pooling, vectors of length 1."""

    name = "dual"
    trains = "encoder"
    Params = DualParams
    learns = "text:DualLearner"
    cosines = True


@dataclass(frozen=True)
class CrossParams(OneLengthParams):
    """Settings of a cross-encoder."""


CrossParams.presets = {
    # the program that LCE was published with (Gao, Dai and Callan, 2021): 7 of the negatives of the first 100
    "lce": CrossParams(max_length=512),
}


class Cross(GroupModel):
    """A cross-encoder: one score for a query and a document read together, from any encoder with a new head."""

    name = "cross"
    trains = "cross-encoder"
    Params = CrossParams
    learns = "text:CrossLearner"

    def conflicts(self, request: TrainRequest, params: CrossParams) -> Iterator[tuple[bool, str]]:
        yield from super().conflicts(request, params)
        wide = "takes the candidates of other queries, with which a cross-encoder would have to read every query"
        yield params.ranking.over_batch, f"loss {params.ranking.name}: {wide}; give {argument('loss', 'lce')}"


@dataclass(frozen=True)
class SparseParams(OneLengthParams):
    """Settings of a sparse encoder; the presets have the values of published SPLADE models."""

    loss: str = "info-nce"
    group_size: int = 2
    batch_size: int = 32
    epochs: float = 3.0
    learning_rate: float = 2e-5
    architecture: Literal["max", "doc"] = setting(
        "max", "SPLADE-max, or SPLADE-doc, whose queries are their words, without a model", tunable=False
    )
    query_weights: Literal["binary", "counts"] = setting(
        "binary",
        "weights of a query's words in SPLADE-doc: 1 each, as in the authors' program, or their counts; search alike",
        tunable=False,
    )
    lambda_q: float = setting(3e-4, "weight of the regularisation of queries; doc has none", at_least=0)
    lambda_d: float = setting(1e-4, "weight of the FLOPS of documents", at_least=0)
    query_regularizer: Literal["flops", "l1"] = setting("flops", "regularizer of queries", tunable=False)
    regularizer_warmup: float = setting(
        1 / 3, "steps of quadratic warm-up of the regularisation; below 1 a share of all steps", at_least=0
    )


_SPLADE = SparseParams(  # Formal et al. (2021, 2022) and the settings files of their program
    batch_size=128,
    max_steps=150000,
    warmup=6000.0,
    max_length=256,
    regularizer_warmup=50000.0,
    seed=123,
)
SparseParams.presets = {
    "splade-max": _SPLADE,
    "splade-doc": replace(_SPLADE, architecture="doc"),
    "splade-distil": replace(_SPLADE, loss="margin-mse", lambda_q=0.5, lambda_d=0.4),
}


class Sparse(GroupModel):
    """A sparse encoder: SPLADE-max, or SPLADE-doc, from any masked-language model."""

    name = "sparse"
    trains = "sparse-encoder"
    Params = SparseParams
    learns = "text:SparseLearner"
    part = "impact"


@dataclass(frozen=True)
class LateParams(GroupParams):
    """Settings of a late-interaction encoder; the presets have the values of paper 002 and of its program."""

    loss: str = "info-nce"
    group_size: int = 2
    batch_size: int = 32
    epochs: float = 3.0
    similarity: Literal["maxsim", "l2"] = setting(
        "maxsim",
        "similarity in the loss: inner products, or minus squared distances, never below that to zeros",
        tunable=False,
    )
    in_batch_negatives: bool = in_batch_setting()
    batch_teacher: bool = setting(
        False,
        "with in-batch negatives, the teacher that made the labels scores all documents of a batch, by the tokens of "
        "the index; no = a document has what the labels give it, 0 where they do not know it",
        tunable=False,
    )
    contrast: float = setting(0.0, "weight of info-nce over the whole batch, added to the loss", at_least=0)
    query_length: int | None = setting(
        None, "tokens at which queries are cut, and to which they are expanded; none = the model's own", at_least=1
    )
    document_length: int | None = setting(None, "tokens at which documents are cut; none = the model's own", at_least=1)
    dimension: int | None = setting(
        None, "numbers of a token, where the training begins with a transformer; none = 128", at_least=1
    )


_COLBERT = LateParams(  # paper 002's program; Section 2.1: 128 numbers a token; 18 of a batch on each of two GPUs
    similarity="l2",
    depth=1000,
    batch_size=36,
    max_steps=400000,
    learning_rate=3e-6,
    weight_decay=0.0,
    warmup=0.0,
    decay=False,
    clip=2.0,
    query_length=32,
    document_length=180,
    dimension=128,
    seed=12345,
)
_STUDENT = replace(_COLBERT, max_steps=600000)  # the published weights are those of step 150,000
LateParams.presets = {
    "colbert": _COLBERT,
    "colbert-hn": replace(_STUDENT, depth=100),
    "colbert-ce": replace(_STUDENT, loss="kl"),  # its script: --kd_temperature 0.25 --dual_supervision_lambda 0.0
    "collective": replace(
        _STUDENT, loss="kl:raise_positives=true", in_batch_negatives=True, batch_teacher=True, depth=100
    ),
}


class Late(GroupModel):
    """A late-interaction encoder (ColBERT), from one or from any transformer, whose tokens are then projected."""

    name = "late"
    trains = "late-encoder"
    Params = LateParams
    learns = "late:LateLearner"
    part = "tokens"

    def conflicts(self, request: TrainRequest, params: LateParams) -> Iterator[tuple[bool, str]]:
        yield from super().conflicts(request, params)
        alone = params.batch_teacher and not params.in_batch_negatives
        yield alone, "batch_teacher=True: expected with in_batch_negatives, whose documents it is asked about"


@dataclass(frozen=True)
class MaskedParams(TextParams):
    """Settings of a masked language model; a new one has BERT's shape with four of its twelve layers."""

    epochs: float = 10.0
    learning_rate: float = 1e-4
    mask_share: float = setting(0.15, "share of a text's tokens that are masked", above=0, at_most=0.9)
    layers: int = setting(4, "of a new model", at_least=1, tunable=False)
    hidden_size: int = setting(768, "hidden size of a new model", at_least=1, tunable=False)
    heads: int = setting(12, "attention heads of a new model", at_least=1, tunable=False)
    vocabulary: int = setting(
        21128,
        "tokens of a new model's vocabulary, all characters before frequent words",
        at_least=6,
        tunable=False,
    )


class Masked(TrainedModel):
    """A masked language model (BERT) of a collection's texts, from another one or, with `--encoder none`, a new one."""

    name = "masked"
    trains = "encoder"
    needs = frozenset({"texts"})
    Params = MaskedParams
    loads, learns = "single_text:load_texts", "single_text:MaskedLearner"
    reads, without = TEXTS, frozenset({"loss"})

    def conflicts(self, request: TrainRequest, params: MaskedParams) -> Iterator[tuple[bool, str]]:
        usual, start, new = MaskedParams(), request.start.name, argument("encoder", NOTHING)
        for name in SHAPE:
            given = start != NOTHING and getattr(params, name) != getattr(usual, name)
            yield given, f"{name}: is of a new model, of {new}; {start} has its own"


@dataclass(frozen=True)
class TermScorerParams(TextParams):
    """Settings of a term scorer; paper 004's eq. 4 is over the words of queries alone."""

    texts: Literal["queries", "documents", "both"] = setting(
        "queries",
        "texts whose words it learns: queries, weighed in a positive (eq. 4), positives, or both",
        tunable=False,
    )


class TermScorerModel(TrainedModel):
    """Weights of words in their context, learnt from TF-IDF (paper 004, eq. 1 to 4), from any encoder."""

    name = "term-scorer"
    needs = frozenset({"topics", "texts", "terms"})
    Params = TermScorerParams
    loads, learns = "single_text:load_terms", "single_text:TermLearner"
    reads, without = TEXTS | {"labels", "topics"}, frozenset({"loss"})
