"""A labeler that reads texts: a document that shares words with the positives or the query is likely relevant too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnreranker.plugins import ContextLabeler, JudgedContext, Params, context_setting, setting


@dataclass(frozen=True)
class SharedWordsParams(Params):
    """Settings of SharedWords."""

    of_query: float = setting(0.5, "weight of words shared with the query", at_least=0, at_most=1)
    context: int = context_setting()


class SharedWords(ContextLabeler):
    """Scores are numbers of shared words: with the query, and with the first positive."""

    name = "shared-words"
    needs = frozenset({"topics", "texts"})
    Params = SharedWordsParams
    params: SharedWordsParams

    def scores(self, one: JudgedContext) -> np.ndarray:
        """(n,) float64, at least 0."""
        words = [set(self.inputs.texts[docid].split()) for docid in one.docids[: one.size]]
        query, weight = set(self.inputs.topics[one.qid].split()), self.params.of_query
        return np.array([weight * len(own & query) + (1 - weight) * len(own & words[0]) for own in words])
