"""LangChain: a retriever over a vector store; a compressor is impossible, as documents carry no vectors."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from rnnreranker.adapters.rag.metrics import METRICS, check_fields, checked_count
from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import metric_of
from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError, nearest, require
from rnnreranker.rnn.hits import params_of

require("langchain_core", "a retriever of LangChain", "'rnnreranker[langchain]'")

from langchain_core.callbacks import (  # noqa: E402
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402
from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever  # noqa: E402


class LangChainRnnRetriever(BaseRetriever):
    """Searches a vector store, and reranks its documents by reciprocal nearest neighbours.

    The store returns `params.context` documents; each gets s* as `rnn_score` in its metadata. `invoke(query, k=…,
    filter=…)` passes all arguments but `k` to the store, before `search_kwargs`.

    Fields:
        store: a `VectorStore`, or its `as_retriever(...)`, whose `search_kwargs` then count.
        vectors: a function from a list of documents to their vectors; an `async` one serves `ainvoke` only. None =
            those of an InMemoryVectorStore.
        embeddings: for the query; None = the store's own.
        k: number of documents returned; None = all.
        metric: of the vectors: cosine, dot_product or l2.
        params: `RnnParams`, or a mapping of some.

    Raises:
        InputError: an unknown field, no store; in a search: an argument that the store does not take, no vectors or
            embeddings, as `rerank_returned`.
    """

    store: Any
    vectors: Callable[[list[Document]], Any] | None = None
    embeddings: Any = None
    k: int | None = 10
    metric: str = "cosine"
    params: Any = None
    search_kwargs: dict[str, Any] = {}  # noqa: RUF012  pydantic copies it

    def __init__(self, **fields: Any) -> None:
        check_fields("LangChainRnnRetriever", fields, type(self).model_fields)
        checked_count(fields.get("k"), "k")
        super().__init__(**_of_store(fields))

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **others: Any
    ) -> list[Document]:
        if inspect.iscoroutinefunction(self.vectors):
            raise InputError("vectors is an async function; call ainvoke, or give one that is not")
        k, search = self._asked(others)
        vector = self._embeddings().embed_query(query)
        hits = self.store.similarity_search_by_vector(vector, **search)
        return self._reranked(vector, hits, (self.vectors or self._own)(hits))[:k]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **others: Any
    ) -> list[Document]:
        k, search = self._asked(others)
        vector = await self._embeddings().aembed_query(query)
        hits = await self.store.asimilarity_search_by_vector(vector, **search)
        if inspect.iscoroutinefunction(self.vectors):
            rows = await self.vectors(hits)
        else:
            rows = await asyncio.to_thread(self.vectors or self._own, hits)
        return (await asyncio.to_thread(self._reranked, vector, hits, rows))[:k]

    def _asked(self, others: dict[str, Any]) -> tuple[int | None, dict[str, Any]]:
        k = checked_count(others.pop("k", self.k), "k")
        search = {**self.search_kwargs, **others}
        if "k" in search:
            raise InputError(
                "search_kwargs has k; give k= for the documents returned, params.context for those searched"
            )
        _check_taken(self.store, search)
        return k, {**search, "k": max(params_of(self.params).context, k or 1)}

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
            best_first=True,
        )
        best = zip(order.tolist(), scores.tolist(), strict=True)
        return [
            hits[row].model_copy(update={"metadata": {**hits[row].metadata, "rnn_score": score}}) for row, score in best
        ]


def _of_store(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, with the store and the search settings of a retriever; InputError: no store, another search type."""
    given = fields.get("store")
    if isinstance(given, VectorStoreRetriever):
        if given.search_type != "similarity":
            raise InputError(
                f"store: its search_type is {given.search_type!r}; expected 'similarity', which is reranked"
            )
        search = {**given.search_kwargs, **fields.get("search_kwargs", {})}
        k = {"k": search.pop("k")} if "k" in search else {}
        return {**k, **fields, "store": given.vectorstore, "search_kwargs": search}
    if not hasattr(given, "similarity_search_by_vector"):
        raise InputError(f"store is a {type(given).__name__}; expected a VectorStore, which searches by a vector")
    return fields


def _check_taken(store: Any, search: dict[str, Any]) -> None:
    """Raises InputError for arguments that the store's search does not take or ignores: all documents would pass a
    filter.
    """
    parameters = inspect.signature(store.similarity_search_by_vector).parameters.values()
    named = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD} - {"embedding", "k"}
    ignores = isinstance(store, InMemoryVectorStore)
    if ignores:
        named = {"filter"}
    if not (unknown := [name for name in search if name not in named]):
        return
    about = f"search_kwargs: {unknown[0]} is no argument of {type(store).__name__}"
    if ignores or not any(one.kind is one.VAR_KEYWORD for one in parameters):
        raise InputError(f"{about}; {nearest(unknown[0], named)}")
    notice(f"{about}.similarity_search_by_vector that it names; check that it is not ignored")
