"""Learned sparse retrieval without Java."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.retrieve.base import Hits, Retriever

if TYPE_CHECKING:
    from rnnreranker.parts.postings.source import QueryImpacts


@dataclass(frozen=True)
class ImpactSearchParams(Params):
    """The weights of the queries' words."""

    query_weights: Literal["model", "binary", "counts"] = setting(
        "model",
        "weights of a query's words: by the model; without a model 1 each (binary, as the authors' SPLADE-doc) or how "
        "often they stand there (counts)",
    )
    encoder: str | None = setting(None, "sparse encoder of queries; none: the one that made the index")


class ImpactRetriever(Retriever):
    """The largest inner products of words' weights (SPLADE and the like); no JVM."""

    name = "impact"
    needs = frozenset({"topics", "impacts"})
    over = "impacts"
    Params = ImpactSearchParams

    def check(self) -> None:
        """Open the impacts and find the encoder of the queries, or its tokenizer.

        Raises:
            InputError: no impacts, no such encoder; UnavailableError: the encoder is not here.
        """
        name = self._encoder()[0]
        if self.params.query_weights != "model":
            from rnnreranker.encode.model_folder import find_model

            find_model(name, "sparse-encoder", weights=False)
        else:
            from rnnreranker.encode.kinds import SparseEncoder

            SparseEncoder.digest_of(name)

    def queries(self) -> QueryImpacts:
        """The weights of queries' words, those of a model quantised like the stored ones.

        Raises:
            InputError: an encoder with other words than the index, a weight beyond 16 bits.
        """
        from scipy.sparse import csr_matrix

        from rnnreranker.encode.kinds import SparseEncoder
        from rnnreranker.encode.model_folder import term_counts
        from rnnreranker.parts.postings.source import QueryImpacts

        source, texts = self.part, list(self.inputs.topics.values())
        name, its = self._encoder()
        if (how := self.params.query_weights) != "model":
            counts, words = term_counts(name, texts, source.words_count, binary=how == "binary")
            queries = QueryImpacts(counts)
        else:
            encoder = SparseEncoder.open(name, devices=self.devices, **its)
            if self.params.encoder is None and source.encoder.get("fingerprint") != encoder.fingerprint:
                raise InputError(
                    f"{source.folder}: the files of its encoder {name} have changed since; make the index again"
                )
            kept = encoder.kept_queries(texts, self.threads)
            parts, words = (kept["weights"], kept["terms"], kept["offsets"]), str(kept["words"])
            queries = source.as_stored(csr_matrix(parts, (len(texts), int(kept["size"]))))
        if words != source.words:
            raise InputError(
                f"{name}: its vocabulary is another than that of the index, which {source.encoder['name']} made; "
                "encode the queries with an encoder of the same vocabulary"
            )
        return queries

    def search(self, queries: Any, hits: int) -> Hits:
        return self.part.search(queries, hits, self.threads)

    def queries_again(self, queries: Any, hits: Hits) -> QueryImpacts:
        from scipy.sparse import csr_matrix, vstack

        from rnnreranker.parts.postings.source import QueryImpacts

        weights = queries.weights
        new = [
            self.feedback.of_impacts(weights[row], self.part.weights(rows), scores) if len(rows) else weights[row]
            for row, (scores, rows) in enumerate(zip(*hits, strict=True))
        ]
        return QueryImpacts(csr_matrix(vstack(new, format="csr"))) if new else queries

    def _encoder(self) -> tuple[str, dict[str, Any]]:
        if self.params.encoder is not None:
            return self.params.encoder, {}
        made = self.part.encoder
        return made["name"], dict(made.get("settings", {}))
