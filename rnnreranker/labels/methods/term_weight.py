"""Label enhancement by weights of words that query and document share (paper 004)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import context_setting, setting
from rnnreranker.labels.methods.base import ContextLabeler, Source
from rnnreranker.parts.terms.word_weights import CollectionWeights, SharedWords, distributions

if TYPE_CHECKING:
    import numpy as np

    from rnnreranker.encode.words.scorer import TermScorer
    from rnnreranker.labels.judged import JudgedContext


@dataclass(frozen=True)
class TermWeightParams(SharedWords):
    """Settings of labels by weights of words. InputError: weights of a scorer without one, or a scorer for others."""

    weights: Literal["tf-idf", "scorer"] = setting(
        "tf-idf",
        "of words: tf-idf, eq. 1 of paper 004, of the part terms (LE-TFIDF); scorer, what a trained term "
        "scorer predicts in each text (LE-BS)",
        flag="term-weights",
    )
    scorer: str | None = setting(
        None, "folder of `train --model term-scorer`, for weights=scorer", flag="term-scorer", tunable=False
    )
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
        metadata = super().describe()
        return metadata if self._scorer is None else metadata | {"scorer": self._scorer.digest}

    def scores(self, one: JudgedContext) -> np.ndarray:
        text = self.inputs.topics[one.qid]
        if self._scorer is None:
            [query] = self._weights.of_texts([text])
            documents = self._weights.of_documents(one.rows)
        else:
            texts = self.inputs.texts
            if lost := [docid for docid in one.docids[: one.size] if docid not in texts]:
                raise InputError(
                    f"query {one.qid}: no text of {lost[0]}; give the documents that the run was made from"
                )
            query, *documents = self._scorer.weights([text, *(texts[docid] for docid in one.docids[: one.size])])
        if not query:
            notice(f"query {one.qid}: no word of it is known, so the scores of all candidates are 0")
        return distributions(query, documents, self.params)[0]

    @cached_property
    def _weights(self) -> CollectionWeights:
        return CollectionWeights(self.inputs.terms)

    @cached_property
    def _scorer(self) -> TermScorer | None:
        return None if self.params.scorer is None else _loaded(self.params.scorer)


@lru_cache(maxsize=1)
def _loaded(path: str) -> TermScorer:
    """The scorer that all shards of a process share."""
    from rnnreranker.encode.words.scorer import TermScorer

    return TermScorer(path)
