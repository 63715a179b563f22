"""Labels by the collective teacher: late interaction with a query that its first passages have expanded."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.settings import context_setting, setting
from rnnreranker.base.written_form import Written
from rnnreranker.labels.methods.teacher import TeacherLabeler
from rnnreranker.methods.feedback.colbert import ColbertFeedback, ColbertParams
from rnnreranker.methods.rerank.prf import NEEDS, PrfParams, PrfReranker

if TYPE_CHECKING:
    from rnnreranker.labels.judged import JudgedContext


@dataclass(frozen=True)
class CollectiveParams(ColbertParams):
    """Settings of labels by the collective teacher: those of ColBERT-PRF, and whether positives give feedback."""

    positives: bool = setting(False, "positives as the first feedback, whatever their MaxSim")
    context: int = context_setting()


class CollectiveLabeler(TeacherLabeler):
    """Weighted MaxSim with the query that ColBERT-PRF expands (paper 002, eq. 6), the same for every positive.

    The scores are those of the reranker `prf` with the feedback `colbert`: of the first of the query's candidates by
    MaxSim, its positives among them. Of a run of late interaction these are its first, as in the paper; nothing is
    retrieved.

    Args and Raises: as `Labeler`; MissingDependencyError where scikit-learn is not installed.
    """

    name = "collective"
    needs = NEEDS["tokens"]
    inner = None
    Params = CollectiveParams

    @cached_property
    def teacher(self) -> PrfReranker:
        params = PrfParams(of_colbert(self.params), self.params.context)
        return PrfReranker(self.inputs, params, threads=self.threads)

    def scores(self, one: JudgedContext) -> np.ndarray:
        """(n,) float64: weighted MaxSim."""
        known = range(len(one.grades)) if self.params.positives else ()
        return self.teacher.scores_knowing(*self.teacher.alone(one.qid, one.docids[: one.size]), known)


def of_colbert(params: ColbertParams) -> str:
    """The written form of the feedback `colbert` with these settings.

    >>> of_colbert(ColbertParams(fb_clusters=24))
    'colbert:fb_docs=3,fb_clusters=24,fb_embeddings=10,fb_expansion_weight=1.0'
    """
    own = {field.name: getattr(params, field.name) for field in dataclasses.fields(ColbertParams)}
    return str(Written(ColbertFeedback.name, own))
