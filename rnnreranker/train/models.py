"""The kinds of trained models."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rnnreranker.base.command import phase
from rnnreranker.base.errors import require
from rnnreranker.base.settings import Params
from rnnreranker.train import params as settings

if TYPE_CHECKING:
    from rnnreranker.train.request import Start, Trained, TrainRequest

NOTHING = "none"  # of --encoder: a new model
TEXTS = frozenset({"documents", "fields"})
LABELLED = frozenset({"labels", "topics", "validation_run", "validation_qrels", "validation_topics"})


class TrainedModel:
    """A kind of model that `python -m rnnreranker.train --model NAME` trains.

    Attributes:
        loads, learns: module:name of the function that reads the inputs, and of the `trainer.Learner`.
        reads: arguments of the request that not every model reads.
        part: of an index; its encoder is the default start.
        trains: kind of encoder that results; "" = none that makes a part.
        encoder_settings: settings of `EncoderParams` that the training takes.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"topics", "texts"})
    Params: ClassVar[type[Params]]  # a subclass of TrainingParams
    loads: ClassVar[str] = ""
    learns: ClassVar[str] = ""
    reads: ClassVar[frozenset[str]] = LABELLED
    part: ClassVar[str] = "dense"
    trains: ClassVar[str] = ""
    encoder_settings: ClassVar[frozenset[str]] = frozenset()

    def train(self, request: TrainRequest, params: Any, device: str) -> Trained:
        with phase("reading the inputs"):
            inputs = _named(self.loads)(request, params)
        return self.train_on(inputs, request.start, request.output, params, device)

    def train_on(self, inputs: Any, start: Start, output: str | Path, params: Any, device: str = "cpu") -> Trained:
        """Train on the result of `loads`, and write the folder `output`; OUTPUT.checkpoints has checkpoints meanwhile.

        Raises:
            InputError: an unsuitable model, a loss that is not finite.
            MissingDependencyError: a package of training is missing.
        """
        for package in ("accelerate", "sentence_transformers"):
            require(package, "training", "'rnnreranker[train]'")
        given = self.name, _named(self.learns), start, params, inputs, Path(output), device
        return _named("trainer:fit")(*given)


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
    Params = settings.TrainParams
    loads, learns = "coder:load_inputs", "coder:CoderLearner"
    reads = LABELLED | {"other_index", "neutrality", "scorer"}
    encoder_settings = frozenset({"pooling", "normalize", "query_prompt", "truncate_dim"})


class GroupModel(TrainedModel):
    """A model that is trained on groups of texts."""

    loads = "groups:load_groups"
    reads = LABELLED | TEXTS | {"negatives"}


class Dual(GroupModel):
    """A dual encoder (paper 004, Section 3.4): one or two towers, mean pooling, vectors of length 1."""

    name = "dual"
    trains = "encoder"
    Params = settings.DualParams
    encoder_settings = frozenset({"query_prompt", "document_prompt"})
    learns = "text:DualLearner"


class Cross(GroupModel):
    """A cross-encoder: one score for a query and a document read together, from any encoder with a new head."""

    name = "cross"
    trains = "cross-encoder"
    Params = settings.CrossParams
    learns = "text:CrossLearner"


class Sparse(GroupModel):
    """A sparse encoder: SPLADE-max, or SPLADE-doc, from any masked-language model."""

    name = "sparse"
    trains = "sparse-encoder"
    Params = settings.SparseParams
    learns = "text:SparseLearner"
    part = "impact"


class Late(GroupModel):
    """A late-interaction encoder (ColBERT), from one or from any transformer, whose tokens are then projected."""

    name = "late"
    trains = "late-encoder"
    Params = settings.LateParams
    learns = "text:LateLearner"
    part = "tokens"


class Masked(TrainedModel):
    """A masked language model (BERT) of a collection's texts, from another one or, with `--encoder none`, a new one."""

    name = "masked"
    trains = "encoder"
    needs = frozenset({"texts"})
    Params = settings.MaskedParams
    loads, learns = "single_text:load_texts", "single_text:MaskedLearner"
    reads = TEXTS


class TermScorerModel(TrainedModel):
    """Weights of words in their context, learnt from TF-IDF (paper 004, eq. 1 to 4), from any encoder."""

    name = "term-scorer"
    needs = frozenset({"topics", "terms"})
    Params = settings.TextParams
    loads, learns = "single_text:load_terms", "single_text:TermLearner"
    reads = frozenset({"labels", "topics"})
