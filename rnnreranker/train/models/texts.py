"""The models that are trained on texts one by one: masked, a language model of a collection, and term-scorer."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from rnnreranker.base import settings
from rnnreranker.base.arguments import argument
from rnnreranker.base.command import counted, progress, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import fields_of
from rnnreranker.base.process.phases import phase
from rnnreranker.base.settings import in_order, setting
from rnnreranker.train.fit import Trained, fit
from rnnreranker.train.model_files import NOTHING
from rnnreranker.train.models.base import SingleTextModel
from rnnreranker.train.params import TextParams, TrainingParams

if TYPE_CHECKING:
    from rnnreranker.train.request import TrainRequest
    from rnnreranker.train.single_text import TermInputs

SHAPE = frozenset({"layers", "hidden_size", "heads", "vocabulary"})  # settings of a new model alone


@in_order
@dataclass(frozen=True)
class MaskedParams(TextParams):
    """How a masked language model is trained, and the shape of a new one: BERT's, with four of its twelve layers."""

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


class Masked(SingleTextModel):
    """A masked language model (BERT) of a collection's texts, from one or, with `--encoder none`, from nothing."""

    name = "masked"
    trains = "encoder"
    needs = frozenset({"texts"})
    Params: ClassVar[type[settings.Params]] = MaskedParams
    reads = frozenset({"documents", "fields"})

    def train(self, request: TrainRequest, params: TrainingParams, loss: settings.Params, device: str) -> Trained:
        from rnnreranker.train.query.samples import held_out_of

        assert isinstance(params, MaskedParams)
        self.refuse(request, loss)
        start = request.start.name
        if start != NOTHING:
            for field in fields_of(type(self)):
                if field.name in SHAPE and getattr(params, field.name) != field.default:
                    raise InputError(
                        f"{field.name}: is of a new model, of {argument('encoder', NOTHING)}; {start} has its own"
                    )
        for name in ("labels", "topics"):
            if getattr(request, name) is not None:
                model = argument("model", self.name)
                raise InputError(f"{argument(name)}: not for {model}, which reads the texts of documents alone")
        with phase("reading texts"):
            texts = _texts(request)
        held_out = held_out_of(list(texts), params, ("text",))
        checked = [text for docid, text in texts.items() if docid in held_out]
        training = [text for docid, text in texts.items() if docid not in held_out]
        with phase("importing torch and transformers", "imports"):
            from rnnreranker.train.single_text import MaskedLearner
        encoder = None if start == NOTHING else start
        return fit(
            lambda: MaskedLearner(encoder, training, checked, params),
            *(self.name, request.output, params),
            checkpoints=request.checkpoints,
            device=device,
        )


def _texts(request: TrainRequest) -> dict[str, str]:
    """Docid -> text, of documents with a text, in the order of their docids."""
    from rnnreranker.train.request import all_documents

    documents_read = all_documents(request, "what the model learns from")
    texts = {one.docid: one.text for one in progress(documents_read, unit="documents", what="read")}
    kept = {docid: texts[docid] for docid in sorted(texts) if texts[docid].strip()}
    if empty := len(texts) - len(kept):
        say(f"{counted(empty, 'document')} with an empty text: left out")
    return kept


@in_order
@dataclass(frozen=True)
class TermScorerParams(TextParams):
    """How a term scorer is trained; paper 004's eq. 4 is over the words of queries alone."""

    texts: Literal["queries", "documents", "both"] = setting(
        "queries",
        "texts whose words it learns: queries, weighed in a positive (eq. 4), positives, or both",
        tunable=False,
    )


class TermScorerModel(SingleTextModel):
    """Weights of words in their context, learnt from their TF-IDF (paper 004, eq. 1 to 4); the base is any encoder."""

    name = "term-scorer"
    needs = frozenset({"topics", "texts", "terms"})
    Params: ClassVar[type[settings.Params]] = TermScorerParams
    reads = frozenset({"documents", "fields"})

    def train(self, request: TrainRequest, params: TrainingParams, loss: settings.Params, device: str) -> Trained:
        from rnnreranker.train.single_text import load_terms

        assert isinstance(params, TermScorerParams)
        self.refuse(request, loss)
        with phase("reading labels and counts"):
            inputs = load_terms(request, params)
        return train_term_scorer(
            inputs,
            request.start.name,
            request.output,
            params,
            checkpoints=request.checkpoints,
            device=device,
        )


def train_term_scorer(
    inputs: TermInputs,
    encoder: str,
    output: str | os.PathLike[str],
    params: TermScorerParams,
    *,
    checkpoints: bool = True,
    device: str = "cpu",
) -> Trained:
    """Train a term scorer and write it to a folder.

    Args:
        inputs: what it learns from, see `term_inputs`.
        encoder: what it begins as: a name, folder or hub id.
        output, params, checkpoints, device: as of `fit`.

    Raises:
        InputError: a model that cannot be trained so, checkpoints of another training.
        MissingDependencyError: without accelerate, or what the words of the language need.
    """
    with phase("importing torch and transformers", "imports"):
        from rnnreranker.train.single_text import TermLearner
    return fit(
        lambda: TermLearner(encoder, inputs, params),
        *(TermScorerModel.name, output, params),
        checkpoints=checkpoints,
        device=device,
    )
