"""Haystack: a component that reranks documents by their embeddings."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

from rnnreranker.adapters.rag.metrics import METRICS, checked_count
from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import metric_of
from rnnreranker.base.errors import require
from rnnreranker.rnn.hits import params_of
from rnnreranker.rnn.params import RnnParams

require("haystack", "a component of Haystack", "'rnnreranker[haystack]'")

from haystack import Document, component, default_from_dict, default_to_dict  # noqa: E402


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

    def __init__(
        self,
        metric: str = "dot_product",
        top_k: int | None = None,
        params: RnnParams | dict[str, Any] | None = None,
    ) -> None:
        self._metric = metric_of(METRICS, metric)
        self.metric, self.top_k = metric, checked_count(top_k, "top_k")
        self.params = None if params is None else params_of(params)

    def to_dict(self) -> dict[str, Any]:
        params = None if self.params is None else dataclasses.asdict(self.params)
        written: dict[str, Any] = default_to_dict(self, metric=self.metric, top_k=self.top_k, params=params)
        return written

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HaystackRnnReranker:
        read: HaystackRnnReranker = default_from_dict(cls, data)
        return read

    @component.output_types(documents=list[Document])
    def run(
        self, documents: list[Document], query_embedding: list[float], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Copies of the documents in their new order, best first, with s* as their scores."""
        count = checked_count(top_k, "top_k") or self.top_k
        scores = [document.score for document in documents]
        order, similarities = rerank_returned(
            "Haystack",
            [document.id for document in documents],
            [document.embedding for document in documents],
            None if all(score is None for score in scores) else scores,
            self._metric.of_fusion(),
            query_embedding,
            self.params,
            advice="ask the retriever with return_embedding=True",
        )
        best = zip(order.tolist(), similarities.tolist(), strict=True)
        return {"documents": [dataclasses.replace(documents[row], score=score) for row, score in best][:count]}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, documents: list[Document], query_embedding: list[float], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        return await asyncio.to_thread(self.run, documents, query_embedding, top_k)
