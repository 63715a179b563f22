"""Labels by other scores: of any reranker, and of words that query and document share (paper 004)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import Chosen, choose
from rnnreranker.base.settings import Params, Written, context_setting, setting
from rnnreranker.encode.model_folder import content_of
from rnnreranker.labels.export import check_texts
from rnnreranker.labels.methods.base import ContextLabeler, JudgedContext, Source
from rnnreranker.methods.feedback.colbert import ColbertFeedback, ColbertParams
from rnnreranker.methods.rerank.prf import NEEDS, PrfParams, PrfReranker
from rnnreranker.parts.postings.word_weights import CollectionWeights, SharedWords, label_distribution

if TYPE_CHECKING:
    from rnnreranker.encode.words.scorer import TermScorer
    from rnnreranker.methods.rerank.base import Reranker

RNN = "rnn"


@dataclass(frozen=True)
class TeacherParams(Params):
    """Settings of labels by a teacher, with those of the teacher beside them in the written form.

    >>> TeacherParams("zhong:k1=5").chosen.params.k1
    5
    """

    teacher: str = setting("encoder", "reranker whose scores are the labels' scores, and its settings")
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
        devices = self.devices if chosen.method.takes_device else None
        return chosen.method(self.inputs, chosen.params, threads=self.threads, device=devices)


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
        own = {field.name: getattr(self.params, field.name) for field in dataclasses.fields(ColbertParams)}
        params = PrfParams(str(Written(ColbertFeedback.name, own)), self.params.context)
        return PrfReranker(self.inputs, params, threads=self.threads)

    def scores(self, one: JudgedContext) -> np.ndarray:
        known = range(len(one.grades)) if self.params.positives else ()
        return self.teacher.scores(*self.teacher.alone(one.qid, one.docids[: one.size]), known)


@dataclass(frozen=True)
class TermWeightParams(SharedWords):
    """Settings of labels by weights of words. InputError: weights of a scorer without one, or a scorer for others."""

    weights: Literal["tf-idf", "scorer"] = setting(
        "tf-idf",
        "of words: tf-idf, eq. 1 of paper 004, of the part terms (LE-TFIDF); scorer, what a trained term "
        "scorer predicts in each text (LE-BS)",
        flag="term-weights",
    )
    scorer: str | None = setting(None, "folder of `train --model term-scorer`, for weights=scorer", flag="term-scorer")
    context: int = context_setting()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights == "scorer" and self.scorer is None:
            raise InputError("weights=scorer: needs a scorer, a folder of `train --model term-scorer`")
        if self.weights != "scorer" and self.scorer is not None:
            raise InputError(f"scorer={self.scorer}: goes with weights=scorer")


class TermWeightLabeler(ContextLabeler):
    """The label distribution of paper 004, eq. 5: tanh of the products of weights over the words in common.

    Targets are made as those of evidence. Pairs without a common word have 0; a warning names queries without words.
    """

    name = "term-weight"
    params: TermWeightParams
    needs = frozenset({"topics", "terms"})
    Params = TermWeightParams

    @classmethod
    def needs_from(cls, source: Source, params: Any) -> frozenset[str]:
        needs = super().needs_from(source, params)
        return needs - {"terms"} | {"texts"} if params.weights == "scorer" else needs

    def describe(self) -> dict[str, Any]:
        return super().describe() | ({} if self._scorer is None else {"scorer": self._scorer.digest})

    def scores(self, one: JudgedContext) -> np.ndarray:
        text = self.inputs.topics[one.qid]
        if (scorer := self._scorer) is None:
            [query] = self._weights.of_texts([text])
            values = self._weights.distributions(query, one.rows, self.params)
        else:
            texts = self.inputs.texts
            check_texts((), one.docids[: one.size], {}, texts)
            query, *documents = scorer.weights([text, *(texts[docid] for docid in one.docids[: one.size])])
            way = self.params.products, self.params.scale
            values = np.array([label_distribution(query, weights, *way) for weights in documents])
        if not query:
            notice(f"query {one.qid}: no word of it is known, so the scores of all candidates are 0")
        return values

    @cached_property
    def _weights(self) -> CollectionWeights:
        return CollectionWeights(self.inputs.terms)

    @cached_property
    def _scorer(self) -> TermScorer | None:
        path = self.params.scorer
        return None if path is None else _scorer_of(path, content_of(Path(path).expanduser()))


@lru_cache(maxsize=1)
def _scorer_of(path: str, _content: str) -> TermScorer:
    """The scorer that all shards of a process share."""
    from rnnreranker.encode.words.scorer import TermScorer

    return TermScorer(path)
