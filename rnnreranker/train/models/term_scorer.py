"""The model term-scorer: the weights of words in their context (BERT-Scorer, paper 004)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from rnnreranker.base import settings
from rnnreranker.base.process.phases import phase
from rnnreranker.base.setting_order import in_order
from rnnreranker.base.settings import setting
from rnnreranker.train.fit import Trained, fit
from rnnreranker.train.models.base import SingleTextModel
from rnnreranker.train.params import TextParams, TrainingParams

if TYPE_CHECKING:
    from rnnreranker.train.request import TrainRequest
    from rnnreranker.train.text.term_inputs import TermInputs


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
        from rnnreranker.train.text.term_inputs import load_terms

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
        from rnnreranker.train.text.term_scorer import TermLearner
    return fit(
        lambda: TermLearner(encoder, inputs, params),
        *(TermScorerModel.name, output, params),
        checkpoints=checkpoints,
        device=device,
    )
