"""Haystack: a component that reranks documents by their embeddings."""

from __future__ import annotations

import dataclasses

from rnnreranker.adapters.stores.hits import Params, pairs, rerank_returned
from rnnreranker.adapters.stores.metrics import metric_of
from rnnreranker.base.errors import count_of, require
from rnnreranker.rnn.hits import params_of

require("haystack", "a component of Haystack", "'rnnreranker[haystack]'")

from haystack import Document, component  # noqa: E402


@component
class HaystackRnnReranker:
    """Reranks the documents of an embedding retriever by reciprocal nearest neighbours.

    The retriever needs `return_embedding=True` and, as its `top_k`, the number of documents to rerank (60). Their
    scores are the first stage; without any score, similarities to the query are.

    Args:
        metric: of the embeddings: dot_product, the default of InMemoryDocumentStore, cosine or l2.
        top_k: number of documents returned; None = all.
        params: rNN's, or a mapping of them.

    Raises:
        InputError: another metric or `top_k`; in `run`, documents without embeddings, as `rerank_returned`.
    """

    def __init__(self, metric: str = "dot_product", top_k: int | None = None, params: Params = None) -> None:
        metric_of("Haystack", metric)
        self.metric, self.top_k = metric, None if top_k is None else count_of(top_k, "top_k")
        self.params = params_of(params).to_dict()  # plain values, which Haystack writes

    @component.output_types(documents=list[Document])
    def run(
        self, documents: list[Document], query_embedding: list[float], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Copies of the documents in their new order, best first, with s* as their scores."""
        best = rerank_returned(
            metric_of("Haystack", self.metric, fused=True),
            [document.id for document in documents],
            [document.embedding for document in documents],
            [document.score for document in documents],
            query_embedding,
            self.params,
            "ask the retriever with return_embedding=True",
        )
        ranked = [dataclasses.replace(documents[row], score=score) for row, score in pairs(best)]
        return {"documents": ranked[: self.top_k if top_k is None else count_of(top_k, "top_k")]}
