"""Learned sparse retrieval: inner products of the weights of words in queries and documents, without Java."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rnnreranker import settings
from rnnreranker.errors import InputError
from rnnreranker.feedback.base import weighed_twice
from rnnreranker.retrieve.base import Retriever, run_of_rows
from rnnreranker.settings import setting

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from rnnreranker.impacts import ImpactSource
    from rnnreranker.runs import Run


@dataclass(frozen=True)
class ImpactSearchParams(settings.Params):
    """Where the weights of the queries' words come from."""

    query_weights: Literal["model", "counts"] = setting(
        "model", "words of queries: weighted by the model, or counted, without a model, as SPLADE-doc does"
    )
    impact_encoder: str | None = setting(
        None, "sparse encoder of queries; none: the one that made the index", tunable=False
    )


class ImpactRetriever(Retriever):
    """The documents with the largest inner products of words' weights (SPLADE and the like): exact, no JVM."""

    name: ClassVar[str] = "impact"
    needs: ClassVar[frozenset[str]] = frozenset({"topics", "impacts"})
    over: ClassVar[str] = "impacts"
    Params: ClassVar[type[settings.Params]] = ImpactSearchParams

    def check(self) -> None:
        """Open the impacts and find the encoder of the queries.

        Raises:
            InputError: no impacts in the index, no such encoder.
            UnavailableError: an encoder that is not here.
        """
        from rnnreranker.encode.sparse import sparse_digest_of

        sparse_digest_of(self._encoder(self.inputs.impacts)[0])

    def retrieve(self, hits: int) -> Run:
        """The run of all topics; documents without a word in common with a topic are not in it."""
        source, topics = self.inputs.impacts, self.inputs.topics
        queries = self.query_impacts(source, list(topics.values()))
        if self.feedback is not None:
            queries = weighed_twice(source, queries, self.feedback, self.threads)
        scores, rows = source.search(queries, hits, self.threads)
        return run_of_rows(tuple(topics), source.docids, scores, rows)

    def query_impacts(self, source: ImpactSource, texts: list[str]) -> csr_matrix:
        """(n, V) float32 CSR: the weights of queries' words, in the numbers of the stored weights.

        Raises:
            InputError: an encoder with other words than that of the index, a weight beyond 16 bits.
        """
        from rnnreranker.encode.kept_queries import encoded_sparse_queries
        from rnnreranker.encode.term_counts import term_counts

        name, its = self._encoder(source)
        if self.params.query_weights == "counts":
            queries, words = term_counts(name, texts, source.vocabulary)
        else:
            found, words = encoded_sparse_queries(name, its, texts, self.threads)
            queries = source.as_stored(found)
        if words != source.words:
            raise InputError(
                f"{name}: its vocabulary is another than that of the index, which {source.encoder['name']} made; "
                "encode the queries with an encoder of the same vocabulary"
            )
        return queries

    def _encoder(self, source: ImpactSource) -> tuple[str, dict[str, Any]]:
        """Name and settings of the queries' encoder."""
        if self.params.impact_encoder is not None:
            return self.params.impact_encoder, {}
        return source.encoder["name"], dict(source.encoder.get("settings", {}))
