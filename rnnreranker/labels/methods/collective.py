"""Labels by the collective teacher: late interaction with a query that its first passages have expanded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.settings import context_setting, setting
from rnnreranker.labels.methods.teacher import TeacherLabeler
from rnnreranker.methods.rerank.colbert_prf import ColbertPrfParams, ColbertPrfReranker

if TYPE_CHECKING:
    from rnnreranker.labels.judged import JudgedContext


@dataclass(frozen=True)
class CollectiveParams(ColbertPrfParams):
    """Settings of labels by the collective teacher: those of `colbert-prf`, and whether positives give feedback."""

    prf_positives: bool = setting(False, "the query's positives are the first feedback, whatever their MaxSim")
    context: int = context_setting()


class CollectiveLabeler(TeacherLabeler):
    """Weighted MaxSim with the query that ColBERT-PRF expands (paper 002, eq. 6), the same for every positive.

    The scores are those of the reranker `colbert-prf`, with its feedback: the first of the query's candidates by
    MaxSim, its positives among them. Of a run of late interaction these are its first, as in the paper; nothing is
    retrieved.

    Args and Raises: as `Labeler`; MissingDependencyError where scikit-learn is not installed.
    """

    name = "collective"
    needs = ColbertPrfReranker.needs
    Params = CollectiveParams

    @cached_property
    def teacher(self) -> ColbertPrfReranker:
        """The reranker, on the same inputs."""
        return ColbertPrfReranker(self.inputs, self.params, threads=self.threads)

    def scores(self, one: JudgedContext) -> np.ndarray:
        """(n,) float64: weighted MaxSim."""
        known = range(len(one.grades)) if self.params.prf_positives else ()
        return self.teacher.scores_knowing(*self.teacher.alone(one.qid, one.docids[: one.size]), known)
