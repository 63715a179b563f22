"""The model term-scorer: the weights of words in their context (BERT-Scorer, paper 004)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

from rnnreranker.base import settings
from rnnreranker.base.process.phases import phase
from rnnreranker.train.models.base import SingleTextModel
from rnnreranker.train.params import TrainingParams
from rnnreranker.train.term.params import TermScorerParams

if TYPE_CHECKING:
    from rnnreranker.train.query.training import Trained
    from rnnreranker.train.request import TrainRequest
    from rnnreranker.train.term.inputs import TermInputs


class TermScorerModel(SingleTextModel):
    """Weights of words in their context, learnt from their TF-IDF (paper 004, eq. 1 to 4); the base is any encoder."""

    name = "term-scorer"
    needs = frozenset({"topics", "texts", "terms"})
    Params: ClassVar[type[settings.Params]] = TermScorerParams
    reads = frozenset({"documents", "fields"})

    def train(self, request: TrainRequest, params: TrainingParams, loss: settings.Params, device: str) -> Trained:
        """Read labels, counts and texts, and train."""
        from rnnreranker.train.term.inputs import load_terms

        assert isinstance(params, TermScorerParams)
        self.refuse(request, loss)
        with phase("reading labels and counts"):
            inputs = load_terms(request, params)
        return train_term_scorer(
            inputs, request.start.name, request.output, params, checkpoints=request.checkpoints, device=device
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
        output, params, checkpoints, device: as of `train_on_texts`.

    Raises:
        InputError: a model that cannot be trained so, checkpoints of another training.
        MissingDependencyError: without accelerate, or what the words of the language need.
    """
    from rnnreranker.train.text.training import train_on_texts

    with phase("importing torch and transformers", "imports"):
        from rnnreranker.train.term.learner import TermLearner
    made = {"labels": inputs.labels, "terms": inputs.terms.to_dict(), "validation_queries": inputs.validation_queries}
    return train_on_texts(
        lambda: TermLearner(encoder, inputs, params),
        *(TermScorerModel.name, encoder, output, params, made, inputs.content),
        checkpoints=checkpoints,
        device=device,
    )
