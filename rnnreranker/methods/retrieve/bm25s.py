"""BM25 over counted words, without Java."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rnnreranker.methods.retrieve.base import Retriever, run_of_rows
from rnnreranker.methods.retrieve.bm25 import Bm25Params
from rnnreranker.parts.postings.source import bm25_weights

if TYPE_CHECKING:
    from rnnreranker.runs import Run


class Bm25sRetriever(Retriever):
    """BM25 over counted words, English or Chinese, exact; no JVM."""

    name = "bm25s"
    needs = frozenset({"topics", "terms"})
    Params = Bm25Params

    def check(self) -> None:
        _ = self.inputs.terms.analyser

    def retrieve(self, hits: int) -> Run:
        source, topics = self.inputs.terms, self.inputs.topics
        queries = source.queries(list(topics.values()))
        k1, b = self.params.k1, self.params.b
        weigh = partial(bm25_weights, k1=k1, b=b)
        scores, rows = source.search(queries, hits, self.threads, ("bm25", k1, b), weigh)
        return run_of_rows(tuple(topics), source.docids, scores, rows)
