"""BM25 over counted words, without Java."""

from __future__ import annotations

from functools import partial
from typing import Any

from rnnreranker.methods.retrieve.base import Hits, Retriever
from rnnreranker.methods.retrieve.bm25 import Bm25Params
from rnnreranker.parts.postings.source import bm25_weights


class Bm25sRetriever(Retriever):
    """BM25 over counted words, English or Chinese, exact; no JVM."""

    name = "bm25s"
    needs = frozenset({"topics", "terms"})
    Params = Bm25Params

    def check(self) -> None:
        _ = self.inputs.terms.analyser

    def queries(self) -> Any:
        return self.part.queries(list(self.inputs.topics.values()))

    def search(self, queries: Any, hits: int) -> Hits:
        k1, b = self.params.k1, self.params.b
        weigh = partial(bm25_weights, k1=k1, b=b)
        return self.part.search(queries, hits, self.threads, ("bm25", k1, b), weigh)
