"""Dense retrieval by Faiss alone."""

from __future__ import annotations

from typing import Any

from rnnreranker.base.command import progress
from rnnreranker.base.method import Inputs
from rnnreranker.methods.retrieve.base import Hits, Retriever
from rnnreranker.parts.vectors.of_run import check_dimension
from rnnreranker.parts.vectors.source import QueryVectors, VectorSource
from rnnreranker.runs import Run


class DenseRetriever(Retriever):
    """The largest inner products, exact or by an approximate Faiss index; no JVM."""

    name = "dense"
    needs = frozenset({"query vectors", "vectors"})
    over = "vectors"

    def queries(self) -> QueryVectors:
        queries: QueryVectors = self.inputs.query_vectors
        check_dimension(queries, self.part.dimension)
        return queries

    def search(self, queries: Any, hits: int) -> Hits:
        scores, rows = [], []
        for first in progress(range(0, len(queries), self.batch_size), unit="batches", what="search"):
            batch = queries.vectors[first : first + self.batch_size]
            hits_of_batch = self.part.search(batch, hits, self.threads)
            scores.extend(hits_of_batch[0])
            rows.extend(hits_of_batch[1])
        return scores, rows

    def queries_again(self, queries: Any, hits: Hits) -> QueryVectors:
        new = queries.vectors.copy()
        for row, rows in enumerate(hits[1]):
            if len(rows):
                new[row] = self.feedback.of_vectors(queries.vectors[row], self.part.fetch(rows))
        return QueryVectors(queries.qids, new)


def dense_run(
    source: VectorSource, queries: QueryVectors, hits: int, *, threads: int | None = None, batch_size: int = 256
) -> Run:
    """A run of exact inner products, or of an approximate Faiss index; results do not depend on threads and batch_size.

    queries: (Q, d) float32; hits: per query, at most.

    Raises:
        InputError: vectors of another dimension than the queries, or with NaN or infinite values.
    """
    inputs = Inputs(vectors=source, query_vectors=queries)
    return DenseRetriever(inputs, threads=threads, batch_size=batch_size).retrieve(hits)
