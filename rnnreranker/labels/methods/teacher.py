"""Labels by a teacher: the scores of any reranker."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.base.chosen_method import Chosen, choose
from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, context_setting, setting
from rnnreranker.base.written_form import Written
from rnnreranker.labels.judged import JudgedContext
from rnnreranker.labels.methods.base import ContextLabeler, Source
from rnnreranker.methods.feedback.colbert import ColbertFeedback, ColbertParams
from rnnreranker.methods.rerank.prf import NEEDS, PrfParams, PrfReranker

if TYPE_CHECKING:
    from rnnreranker.methods.rerank import Reranker

RNN = "rnn"


@dataclass(frozen=True)
class TeacherParams(Params):
    """Settings of labels by a teacher, with those of the teacher beside them in the written form.

    >>> TeacherParams("zhong:k1=5").chosen.params.k1
    5
    """

    teacher: str = setting("encoder", "reranker whose scores are the labels' scores, and its settings", tunable=False)
    context: int = context_setting()

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.chosen

    @property
    def chosen(self) -> Chosen:
        """The teacher with its settings; rNN without a preset compares vectors alone.

        Raises:
            InputError: unknown reranker or settings, or similarities of other sources than vectors.
        """
        written = Written.read(self.teacher)
        if written.name == RNN and not written.preset:
            written = dataclasses.replace(written, preset="vectors")
        method = choose("reranker", written)
        if (method.source, method.queries) != ("vectors", None):
            raise InputError(f"teacher {written}: a teacher compares vectors; leave from and queries out")
        return method


class TeacherLabeler(ContextLabeler):
    """The scores of a reranker, the same for every positive whatever its grade, transformed as those of evidence are.

    A context holds all positives. With normalization=none, boost=1 and n_max=none targets are the softmax of the
    scores, for distillation.
    """

    name = "teacher"
    whole = True
    inner: ClassVar[tuple[str, str] | None] = ("teacher", "reranker")
    Params: ClassVar[type[Params]] = TeacherParams
    params: Any  # a subclass has others

    @classmethod
    def needs_from(cls, source: Source, params: Any) -> frozenset[str]:
        """Needs of the teacher. InputError: a teacher that reads scores of the run."""
        needs = super().needs_from(source, params) if cls.inner is None or source != "vectors" else params.chosen.needs
        if "run scores" in needs:
            raise InputError(f"teacher {params.teacher}: reads scores of the run, which positives put in have not")
        return needs

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"teacher": self.teacher.describe()}

    def remark(self) -> str:
        return self.teacher.remark()

    def scores(self, one: JudgedContext) -> np.ndarray:
        return self.teacher.scores(*self.teacher.alone(one.qid, one.docids[: one.size]))

    @cached_property
    def teacher(self) -> Reranker:
        chosen = self.params.chosen
        return chosen.method(self.inputs, chosen.params, threads=self.threads, device=self.devices)


@dataclass(frozen=True)
class CollectiveParams(ColbertParams):
    """Settings of labels by the collective teacher."""

    positives: bool = setting(False, "positives as the first feedback, whatever their MaxSim")
    context: int = context_setting()


class CollectiveLabeler(TeacherLabeler):
    """Weighted MaxSim with the query that ColBERT-PRF expands (paper 002, eq. 6), the same for every positive.

    The scores are those of the reranker `prf` with feedback `colbert`, over the query's candidates and positives.
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
        known = range(len(one.grades)) if self.params.positives else ()
        return self.teacher.scores_knowing(*self.teacher.alone(one.qid, one.docids[: one.size]), known)


def of_colbert(params: ColbertParams) -> str:
    """The written form of the feedback `colbert` with these settings.

    >>> of_colbert(ColbertParams(fb_clusters=24))
    'colbert:fb_docs=3,fb_clusters=24,fb_embeddings=10,fb_expansion_weight=1.0'
    """
    own = {field.name: getattr(params, field.name) for field in dataclasses.fields(ColbertParams)}
    return str(Written(ColbertFeedback.name, own))
