"""LangChain: a retriever over a vector store. Its documents carry no vectors, so that no compressor could do this."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from rnnreranker.adapters.rag.metrics import METRICS, checked_count
from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import metric_of
from rnnreranker.base.errors import InputError, require
from rnnreranker.rnn.params import RnnParams

require("langchain_core", "a retriever of LangChain", "'rnnreranker[langchain]'")

from langchain_core.callbacks import (  # noqa: E402
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402
from langchain_core.vectorstores import InMemoryVectorStore  # noqa: E402


class LangChainRnnRetriever(BaseRetriever):
    """Searches a vector store, and reranks its documents by reciprocal nearest neighbours.

    The query is encoded once, by the store's own embeddings. `params.context` documents are asked for and reranked;
    each has s* as `rnn_score` in its metadata.

    Fields:
        store: a `VectorStore`.
        vectors: the vectors of documents, a function of a list of them; one that is `async` serves `ainvoke` alone.
            None = those of the store, which is possible of an InMemoryVectorStore.
        embeddings: for the query; None = the store's own.
        k: how many documents are given back; None = all.
        metric: what vectors are compared by: cosine, dot_product or l2.
        params: `RnnParams`; None = the defaults.
        search_kwargs: for the store, such as a filter.

    Raises:
        InputError: as the store is searched: no vectors, no embeddings, another metric, as `rerank_returned`.
    """

    store: Any
    vectors: Callable[[list[Document]], Any] | None = None
    embeddings: Any = None
    k: int | None = 10
    metric: str = "cosine"
    params: Any = None
    search_kwargs: dict[str, Any] = {}  # noqa: RUF012  pydantic copies it

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        if inspect.iscoroutinefunction(self.vectors):
            raise InputError("vectors is an async function; call ainvoke, or give one that is not")
        vector = self._embeddings().embed_query(query)
        hits = self.store.similarity_search_by_vector(vector, k=self._context(), **self.search_kwargs)
        return self._reranked(vector, hits, (self.vectors or self._own)(hits))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        vector = await self._embeddings().aembed_query(query)
        hits = await self.store.asimilarity_search_by_vector(vector, k=self._context(), **self.search_kwargs)
        if inspect.iscoroutinefunction(self.vectors):
            rows = await self.vectors(hits)
        else:
            rows = await asyncio.to_thread(self.vectors or self._own, hits)
        return await asyncio.to_thread(self._reranked, vector, hits, rows)

    def _context(self) -> int:
        params: RnnParams = self.params or RnnParams()
        return max(params.context, checked_count(self.k, "k") or 1)

    def _embeddings(self) -> Any:
        model = self.embeddings or self.store.embeddings
        if model is None:
            raise InputError(f"embeddings=None: a {type(self.store).__name__} has none for the query; give embeddings")
        return model

    def _own(self, hits: list[Document]) -> Sequence[Any]:
        if not isinstance(self.store, InMemoryVectorStore):
            raise InputError(
                f"vectors=None: a {type(self.store).__name__} gives no vectors with its documents; give vectors=, "
                "a function from a list of documents to theirs"
            )
        return [self.store.store.get(str(hit.id), {}).get("vector") for hit in hits]

    def _reranked(self, query: Any, hits: list[Document], rows: Sequence[Any]) -> list[Document]:
        order, scores = rerank_returned(
            "LangChain",
            [position if hit.id is None else hit.id for position, hit in enumerate(hits)],
            rows,
            None,
            metric_of(METRICS, self.metric),
            query,
            self.params,
            advice="let vectors= give one for each document",
        )
        best = zip(order.tolist(), scores.tolist(), strict=True)
        return [
            hits[row].model_copy(update={"metadata": {**hits[row].metadata, "rnn_score": score}}) for row, score in best
        ][: self.k]
