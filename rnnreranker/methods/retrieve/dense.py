"""Dense retrieval by Faiss alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base.command import progress
from rnnreranker.methods.feedback.base import second_pass_vectors
from rnnreranker.methods.retrieve.base import Retriever, run_of_rows
from rnnreranker.parts.vectors.of_run import check_dimension

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.runs import Run


class DenseRetriever(Retriever):
    """The largest inner products, exact or by an approximate Faiss index; no JVM."""

    name = "dense"
    needs = frozenset({"query vectors", "vectors"})
    over = "vectors"

    def retrieve(self, hits: int) -> Run:
        source, queries = self.inputs.vectors, self.inputs.query_vectors
        if self.feedback is not None:
            queries = second_pass_vectors(source, queries, self.feedback, self.threads, self.batch_size)
        return dense_run(source, queries, hits, threads=self.threads, batch_size=self.batch_size)


def dense_run(
    source: VectorSource, queries: QueryVectors, hits: int, *, threads: int | None = None, batch_size: int = 256
) -> Run:
    """A run of exact inner products, or of an approximate Faiss index.

    queries: (Q, d) float32; hits: per query, at most. Results do not depend on threads (None = one per core) and
    batch_size.

    Raises:
        InputError: vectors of another dimension than the queries, or with NaN or infinite values.
    """
    check_dimension(queries, source.dimension)
    scores, rows = [], []
    for first in progress(range(0, len(queries.qids), batch_size), unit="batches", what="search"):
        hits_of_batch = source.search(queries.vectors[first : first + batch_size], hits, threads)
        scores.extend(hits_of_batch[0])
        rows.extend(hits_of_batch[1])
    return run_of_rows(queries.qids, source.docids, scores, rows)
