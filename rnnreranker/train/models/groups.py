"""The models that are trained on groups of texts: dual, cross, sparse and late encoders, with their presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rnnreranker.base import settings
from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find
from rnnreranker.base.settings import in_order, setting
from rnnreranker.train.losses import BatchLoss, CosineLoss
from rnnreranker.train.models.base import GroupModel
from rnnreranker.train.params import GroupParams, Kind, OneLengthParams, in_batch_setting, temperature_setting

if TYPE_CHECKING:
    from rnnreranker.train.groups import GroupInputs
    from rnnreranker.train.request import TrainRequest


@in_order
@dataclass(frozen=True)
class DualParams(OneLengthParams):
    """How a dual encoder is trained; the presets have what paper 004 states: length, loss and alpha.

    It states neither learning rate nor batch size, epochs or negatives: those are the defaults. `f-ebr` is ours: of
    that row the paper names another alone (Huang et al., KDD 2020), whose loss and two towers stand here as we remember
    them, for `--encoder none`; rate, epochs and margin are in neither.
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

    of_loss: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "le-none": {"alpha": 0.0},
        "le-bs": {"alpha": 1.0},
        "le-bs-nq": {"alpha": 0.2},
    }

    @property
    def kind(self) -> Kind:
        return self.negatives_from


_PAPER = DualParams(max_length=64)
DualParams.presets = {
    "le-none": _PAPER,  # SBERT with the paper's loss
    "le-bs": _PAPER,  # SQuAD, and every cold start
    "le-bs-nq": _PAPER,
    "f-ebr": replace(_PAPER, loss="triplet", towers="separate", learning_rate=1e-2, epochs=10.0),
}


class Dual(GroupModel):
    """A dual encoder (paper 004, Section 3.4): one or two towers, mean pooling, vectors of length 1."""

    name = "dual"
    trains = "encoder"
    Params: ClassVar[type[settings.Params]] = DualParams
    cosines = True

    def learner(self, *given: Any) -> Any:
        from rnnreranker.train.text import DualLearner

        return DualLearner(*given)

    def check(self, params: DualParams) -> None:
        """As of every model, and that no temperature is given to a loss of the cosines themselves."""
        super().check(params)
        if params.inverse_temperature is not None and issubclass(find("loss", params.loss), CosineLoss):
            raise InputError(
                f"inverse_temperature={params.inverse_temperature:g}: expected none with the loss {params.loss}, which "
                "is of the cosines themselves"
            )


@in_order
@dataclass(frozen=True)
class CrossParams(OneLengthParams):
    """How a cross-encoder is trained; the presets have the values of published rerankers."""


CrossParams.presets = {
    # the program that LCE was published with (Gao, Dai and Callan, 2021): 7 of the negatives of the first 100
    "lce": CrossParams(max_length=512),
}


class Cross(GroupModel):
    """A cross-encoder: one score for a query and a document read together, from any encoder with a new head."""

    name = "cross"
    trains = "cross-encoder"
    Params: ClassVar[type[settings.Params]] = CrossParams

    def learner(self, *given: Any) -> Any:
        from rnnreranker.train.text import CrossLearner

        return CrossLearner(*given)

    def check(self, params: CrossParams) -> None:
        """As of every model, and that the loss asks for no other query's candidates."""
        super().check(params)
        if issubclass(find("loss", params.loss), BatchLoss):
            raise InputError(
                f"loss {params.loss}: takes the candidates of other queries, with which a cross-encoder would have to "
                f"read every query; give {argument('loss', 'lce')}"
            )


@in_order
@dataclass(frozen=True)
class SparseParams(OneLengthParams):
    """How a sparse encoder is trained; the presets have the values of published SPLADE models."""

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
    Params: ClassVar[type[settings.Params]] = SparseParams
    part = "impact"

    def learner(self, *given: Any) -> Any:
        from rnnreranker.train.sparse import SparseLearner

        return SparseLearner(*given)

    def check(self, params: SparseParams) -> None:
        """As of every model, and that nothing is said of weights of queries that the architecture does not have."""
        super().check(params)
        if params.architecture == "doc" and params.query_regularizer != "flops":
            raise InputError(
                f"query_regularizer={params.query_regularizer}: expected none with the architecture doc, whose "
                "queries are their words, which no training changes"
            )
        if params.architecture == "max" and params.query_weights != "binary":
            raise InputError(
                f"query_weights={params.query_weights}: expected none with the architecture max, whose queries the "
                "model weighs; it is for doc"
            )


@in_order
@dataclass(frozen=True)
class LateParams(GroupParams):
    """How a late-interaction encoder is trained; the presets have the values of paper 002 and of its program."""

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

    of_loss: ClassVar[Mapping[str, Mapping[str, Any]]] = {"collective": {"raise_positives": True}}


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
    "collective": replace(_STUDENT, loss="kl", in_batch_negatives=True, batch_teacher=True, depth=100),
}


class Late(GroupModel):
    """A late-interaction encoder (ColBERT), from one or from any transformer, whose tokens are then projected."""

    name = "late"
    trains = "late-encoder"
    Params: ClassVar[type[settings.Params]] = LateParams
    part = "tokens"

    def learner(self, *given: Any) -> Any:
        from rnnreranker.train.late import LateLearner

        return LateLearner(*given)

    def check(self, params: LateParams) -> None:
        """As of every model, and that nothing is added to a loss that is it already."""
        super().check(params)
        if params.contrast and issubclass(find("loss", params.loss), BatchLoss):
            raise InputError(
                f"contrast={params.contrast}: expected 0 with the loss {params.loss}, which is over the whole batch "
                "itself"
            )
        if params.batch_teacher and not params.in_batch_negatives:
            raise InputError("batch_teacher=True: expected with in_batch_negatives, whose documents it is asked about")

    def inputs(self, request: TrainRequest, params: LateParams) -> GroupInputs:
        """As of every model, and the teacher of the labels where it is asked about the documents of a batch."""
        inputs = super().inputs(request, params)
        if not params.batch_teacher:
            return inputs
        from rnnreranker.index.opening import open_index
        from rnnreranker.train.late import BatchTeacher

        if request.labels is None or request.index is None:
            labels, index = argument("labels"), argument("index")
            raise InputError(f"batch_teacher: needs {labels}, and {index} with the tokens that they were made from")
        opened = open_index(request.index, needs={"tokens"})
        topics = {pool.qid: inputs.queries[pool.qid] for pool in inputs.pools}
        return dataclasses.replace(inputs, teacher=BatchTeacher(inputs.made["labels"], opened, topics))
