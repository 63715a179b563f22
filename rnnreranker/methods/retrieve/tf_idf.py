"""TF-IDF over counted words, without Java."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rnnreranker.base.errors import require
from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.retrieve.base import Hits, Retriever
from rnnreranker.parts.postings.source import cosine_weights, paper_weights


@dataclass(frozen=True)
class TfIdfParams(Params):
    """How words are weighted."""

    variant: Literal["cosine", "paper"] = setting(
        "cosine",
        "cosine: of the vectors of scikit-learn's TfidfVectorizer; paper: the sum of eq. 1 of paper 004 over the "
        "query's words",
    )


class TfIdfRetriever(Retriever):
    """The largest TF-IDF scores.

    `cosine`: scikit-learn's TfidfVectorizer. `paper`: Σ_{w in x} t(w, y) over the words w of the query x, with
    repetitions, with eq. 1 of paper 004 for the document y (its Table 1 does not say which TF-IDF it has).
    """

    name = "tf-idf"
    needs = frozenset({"topics", "terms"})
    Params = TfIdfParams

    def check(self) -> None:
        if self.params.variant == "cosine":
            require("sklearn", "TF-IDF", "'rnnreranker[terms]'")
        _ = self.inputs.terms.analyser

    def queries(self) -> Any:
        return self.part.queries(list(self.inputs.topics.values()))

    def search(self, queries: Any, hits: int) -> Hits:
        weigh: Any = paper_weights
        if self.params.variant == "cosine":
            weigh, queries = cosine_weights(self.part.counts, queries)
        return self.part.search(queries, hits, self.threads, self.params.variant, weigh)
