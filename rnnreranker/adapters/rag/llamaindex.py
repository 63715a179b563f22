"""LlamaIndex: a postprocessor of nodes, which reads their vectors from the index."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from rnnreranker.adapters.rag.metrics import METRICS, check_fields, checked_count
from rnnreranker.adapters.stores.hits import rerank_returned
from rnnreranker.adapters.stores.metrics import metric_of
from rnnreranker.base.errors import InputError, require

require("llama_index.core", "a postprocessor of LlamaIndex", "'rnnreranker[llamaindex]'")

from llama_index.core.postprocessor.types import BaseNodePostprocessor  # noqa: E402
from llama_index.core.schema import NodeWithScore, QueryBundle  # noqa: E402


class LlamaIndexRnnReranker(BaseNodePostprocessor):
    """Reranks retrieved nodes by reciprocal nearest neighbours; s* becomes their score.

    The retriever's `similarity_top_k` (60) is the number of nodes to rerank. Their scores are the first stage; without
    any score, similarities to the query are.

    Fields:
        vectors: of nodes: an index, or its vector store, with `get(node_id)`, a mapping from node ids, or a function
            from a list of these to vectors. None = the nodes' own embeddings.
        embed_model: for queries without an embedding, as on LlamaIndex's asynchronous path.
        top_n: number of nodes returned; None = all.
        metric: of the vectors: cosine, dot_product or l2.
        params: `RnnParams`, or a mapping of some.

    Raises:
        InputError: an unknown field; in reranking: a query without an embedding, as `rerank_returned`.
    """

    vectors: Any = None
    embed_model: Any = None
    top_n: int | None = None
    metric: str = "cosine"
    params: Any = None

    def __init__(self, **fields: Any) -> None:
        check_fields(self.class_name(), fields, type(self).model_fields)
        checked_count(fields.get("top_n"), "top_n")
        super().__init__(**fields)

    @classmethod
    def class_name(cls) -> str:
        return "LlamaIndexRnnReranker"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = self._embedding(query_bundle)
        if query is None and query_bundle is not None:
            query = self.embed_model.get_agg_embedding_from_queries(query_bundle.embedding_strs)
        return self._reranked(nodes, query)

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = self._embedding(query_bundle)
        if query is None and query_bundle is not None:
            query = await self.embed_model.aget_agg_embedding_from_queries(query_bundle.embedding_strs)
        return await asyncio.to_thread(self._reranked, nodes, query)

    def _embedding(self, query_bundle: QueryBundle | None) -> Any:
        """The query's own embedding; None if the model must make it."""
        if query_bundle is None:
            raise InputError("no query came with the nodes; expected query_bundle or query_str")
        if query_bundle.embedding is None and self.embed_model is None:
            raise InputError(
                "embed_model=None: the query has no embedding (LlamaIndex drops it on the asynchronous path); give "
                "LlamaIndexRnnReranker embed_model=, the index's"
            )
        return query_bundle.embedding

    def _reranked(self, nodes: list[NodeWithScore], query: Any) -> list[NodeWithScore]:
        ids, scores = [one.node.node_id for one in nodes], [one.score for one in nodes]
        order, similarities = rerank_returned(
            "LlamaIndex",
            ids,
            _vectors(self.vectors, nodes, ids),
            None if all(score is None for score in scores) else scores,
            metric_of(METRICS, self.metric).of_fusion(),
            query,
            self.params,
            advice="give LlamaIndexRnnReranker vectors=, the index or a mapping from node ids",
        )
        best = zip(order.tolist(), similarities.tolist(), strict=True)
        count = checked_count(self.top_n, "top_n")
        return [NodeWithScore(node=nodes[row].node, score=score) for row, score in best][:count]


def _vectors(source: Any, nodes: list[NodeWithScore], ids: list[str]) -> Sequence[Any]:
    if source is None:
        return [one.node.embedding for one in nodes]
    source = getattr(source, "vector_store", source)
    if isinstance(source, Mapping):
        return [source.get(name) for name in ids]
    if not hasattr(source, "get"):
        if not callable(source):
            raise InputError(f"vectors is a {type(source).__name__}: expected an index, a mapping or a function of ids")
        return list(source(ids))
    return [_of_store(source, name) for name in ids]


def _of_store(store: Any, name: str) -> Any:
    try:
        return store.get(name)
    except KeyError:
        return None
