"""Label enhancement by the weights of words that a query and a document share (paper 004)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from rnnreranker.command import counted, say
from rnnreranker.labels.methods.base import ContextLabeler
from rnnreranker.settings import Params, context_setting, setting
from rnnreranker.terms.word_weights import CollectionWeights, distributions

if TYPE_CHECKING:
    import numpy as np

    from rnnreranker.labels.judged import Judged, JudgedContext
    from rnnreranker.labels.soft import SoftLabels
    from rnnreranker.runs import Run


@dataclass(frozen=True)
class TermWeightParams(Params):
    """Settings of labels by the weights of words."""

    weights: Literal["tf-idf"] = setting(
        "tf-idf", "of words: eq. 1 of paper 004, from the index's part terms (LE-TFIDF)", flag="term-weights"
    )
    context: int = context_setting()


class TermWeightLabeler(ContextLabeler):
    """The label distribution of paper 004, eq. 5: tanh of the mean product of weights over the words in common.

    The file's scores are eq. 5, of positives and other candidates alike; the targets are made of them as those of
    evidence are. A candidate without a word in common with the query has 0. Both are said on stderr: how many pairs
    have none, and how many queries have no word at all.

    Args and Raises: as `Labeler`.
    """

    name = "term-weight"
    needs = frozenset({"topics", "terms"})
    Params = TermWeightParams

    def infer_from(self, run: Run, judged: Judged) -> tuple[SoftLabels, int]:
        """See `Labeler.infer_from`."""
        self._pairs = self._apart = self._wordless = 0
        found = super().infer_from(run, judged)
        if self._apart:
            pairs = counted(self._pairs, "pair")
            say(f"{self._apart} of {pairs} of query and candidate share no word: their score is 0")
        if self._wordless:
            say(f"{counted(self._wordless, 'query', 'queries')} without a word: the scores of all candidates are 0")
        return found

    def scores(self, one: JudgedContext) -> np.ndarray:
        """(n,) float64: eq. 5 of the candidates."""
        [query] = self._weights.of_texts([self.inputs.topics[one.qid]])
        found, apart = distributions(query, self._weights.of_documents(one.rows))
        self._pairs, self._apart = self._pairs + one.size, self._apart + apart
        self._wordless += not query
        return found

    @cached_property
    def _weights(self) -> CollectionWeights:
        return CollectionWeights(self.inputs.terms)

    @property
    def source_of_rows(self) -> Any:
        """See `Labeler.source_of_rows`."""
        return self.inputs.terms
