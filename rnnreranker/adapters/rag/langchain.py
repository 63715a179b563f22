"""LangChain: a retriever over a vector store; a compressor is impossible, as documents carry no vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rnnreranker.adapters.stores.hits import pairs, rerank_returned
from rnnreranker.adapters.stores.metrics import metric_of
from rnnreranker.base.errors import InputError, count_of, require
from rnnreranker.rnn.hits import params_of

require("langchain_core", "a retriever of LangChain", "'rnnreranker[langchain]'")

from langchain_core.documents import Document  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore  # noqa: E402
from pydantic import ConfigDict  # noqa: E402


class LangChainRnnRetriever(BaseRetriever):
    """Searches a vector store, and reranks its documents by reciprocal nearest neighbours.

    The store returns `params.context` documents; each gets s* as `rnn_score` in its metadata. `invoke(query, k=…,
    filter=…)` passes all arguments but `k` to the store; `search_kwargs` has their defaults, also of `k`.

    Fields:
        store: a `VectorStore`.
        vectors: a function from a list of documents to their vectors; None = those of an InMemoryVectorStore.
        embeddings: for the query; None = the store's own.
        k: number of documents returned; None = all.
        metric: of the vectors: cosine, dot_product or l2.
        params: `RnnParams`, or a mapping of some.

    Raises:
        ValueError: an unknown field, another type. InputError: in a search: no vectors or embeddings, another metric,
            as `rerank_returned`.
    """

    model_config = ConfigDict(extra="forbid")

    store: VectorStore
    vectors: Callable[[list[Document]], Any] | None = None
    embeddings: Any = None
    k: int | None = 10
    metric: str = "cosine"
    params: Any = None
    search_kwargs: dict[str, Any] = {}  # noqa: RUF012  pydantic copies it

    def _get_relevant_documents(self, query: str, *, run_manager: Any, **others: Any) -> list[Document]:
        others = self.search_kwargs | others
        k = others.pop("k", self.k)
        k = None if k is None else count_of(k, "k")
        metric, model = metric_of("LangChain", self.metric), self.embeddings or self.store.embeddings
        if model is None:
            raise InputError(f"embeddings=None: a {type(self.store).__name__} has none for the query; give embeddings")
        vector, deep = model.embed_query(query), max(params_of(self.params).context, k or 1)
        hits = self.store.similarity_search_by_vector(vector, k=deep, **others)
        best = rerank_returned(
            metric,
            [position if hit.id is None else hit.id for position, hit in enumerate(hits)],
            (self.vectors or self._own)(hits),
            None,
            vector,
            self.params,
            "let vectors= give one for each document",
        )
        return [
            hits[row].model_copy(update={"metadata": {**hits[row].metadata, "rnn_score": score}})
            for row, score in pairs(best)[:k]
        ]

    def _own(self, hits: list[Document]) -> list[Any]:
        if not isinstance(self.store, InMemoryVectorStore):
            raise InputError(
                f"vectors=None: a {type(self.store).__name__} gives no vectors with its documents; give vectors=, "
                "a function from a list of documents to theirs"
            )
        return [self.store.store.get(str(hit.id), {}).get("vector") for hit in hits]
