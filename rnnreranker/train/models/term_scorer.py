"""The model term-scorer: the weights of words in their context (BERT-Scorer, paper 004)."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from rnnreranker import settings
from rnnreranker.process.phases import phase
from rnnreranker.settings import setting
from rnnreranker.train.models.base import TextModel
from rnnreranker.train.params import TrainingParams
from rnnreranker.train.text_params import TextParams

if TYPE_CHECKING:
    from rnnreranker.train.training import Trained


@dataclass(frozen=True)
class TermScorerParams(TextParams):
    """How a term scorer is trained.

    Raises:
        InputError: values out of range, all of them in one message.
    """

    texts: Literal["both", "queries", "documents"] = setting(
        "both",
        "whose words it learns: queries with their weights in a positive, positives with their own, or both",
        flag="learn-from",
        tunable=False,
    )


class TermScorer(TextModel):
    """Weights of words in their context, learnt from their TF-IDF (paper 004, eq. 1 to 4); the base is any encoder."""

    name = "term-scorer"
    needs = frozenset({"topics", "texts", "terms"})
    Params: ClassVar[type[settings.Params]] = TermScorerParams
    flags = frozenset({"documents"})

    def train(self, args: argparse.Namespace, params: TrainingParams, loss: settings.Params, device: str) -> Trained:
        """Read labels, counts and texts, and train."""
        from rnnreranker.train.term_inputs import load_terms
        from rnnreranker.train.text_training import train_on_texts

        assert isinstance(params, TermScorerParams)
        self.refuse(args, loss)
        with phase("reading labels and counts"):
            found = load_terms(args, params)
        with phase("importing torch and transformers", "imports"):
            from rnnreranker.train.term_learner import TermLearner
        made = {"labels": found.labels, "terms": found.terms.to_dict(), "validation_queries": found.validation_queries}
        return train_on_texts(
            lambda: TermLearner(args.encoder, found, params),
            *(self.name, args.encoder, args.output, params, made, found.content),
            checkpoints=args.checkpoints,
            device=device,
        )
