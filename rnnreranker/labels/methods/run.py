"""Labels by a run: the scores that its candidates have say how relevant they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.settings import Params, context_setting
from rnnreranker.labels.methods.base import ContextLabeler

if TYPE_CHECKING:
    from rnnreranker.labels.judged import JudgedContext


@dataclass(frozen=True)
class RunLabelParams(Params):
    """Settings of labels by a run."""

    context: int = context_setting()


class RunLabeler(ContextLabeler):
    """The scores of the run itself, the same for every positive, transformed as those of evidence are.

    So a query encoder learns from whatever made the run: first stages fused, a reranker, scores of a model that was run
    elsewhere. A positive that the run does not have gets the lowest score of its context, before grades count.
    """

    name = "run"
    Params = RunLabelParams

    def scores(self, one: JudgedContext) -> np.ndarray:
        """(n,) float64: those of the run."""
        return one.scores
