"""LlamaIndex: a postprocessor of nodes, which reads their vectors from the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rnnreranker.adapters.stores.hits import pairs, rerank_returned
from rnnreranker.adapters.stores.metrics import metric_of
from rnnreranker.base.errors import InputError, count_of, require

require("llama_index.core", "a postprocessor of LlamaIndex", "'rnnreranker[llamaindex]'")

from llama_index.core.postprocessor.types import BaseNodePostprocessor  # noqa: E402
from llama_index.core.schema import NodeWithScore, QueryBundle  # noqa: E402
from pydantic import ConfigDict  # noqa: E402


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
        ValueError: an unknown field. InputError: in reranking: a query without an embedding, another metric, as
            `rerank_returned`.
    """

    model_config = ConfigDict(extra="forbid")

    vectors: Any = None
    embed_model: Any = None
    top_n: int | None = None
    metric: str = "cosine"
    params: Any = None

    @classmethod
    def class_name(cls) -> str:
        return "LlamaIndexRnnReranker"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = None if query_bundle is None else query_bundle.embedding
        if query is None and query_bundle is not None and self.embed_model is not None:
            query = self.embed_model.get_agg_embedding_from_queries(query_bundle.embedding_strs)
        if query is None:
            raise InputError(
                "embed_model=None: the query has no embedding (LlamaIndex drops it on the asynchronous path); give "
                "LlamaIndexRnnReranker embed_model=, the index's, and the postprocessor a query"
            )
        best = rerank_returned(
            metric_of("LlamaIndex", self.metric, fused=True),
            [one.node.node_id for one in nodes],
            self._vectors(nodes),
            [one.score for one in nodes],
            query,
            self.params,
            "give LlamaIndexRnnReranker vectors=, the index or a mapping from node ids",
        )
        count = None if self.top_n is None else count_of(self.top_n, "top_n")
        return [NodeWithScore(node=nodes[row].node, score=score) for row, score in pairs(best)[:count]]

    def _vectors(self, nodes: list[NodeWithScore]) -> Sequence[Any]:
        source, ids = getattr(self.vectors, "vector_store", self.vectors), [one.node.node_id for one in nodes]
        if source is None:
            return [one.node.embedding for one in nodes]
        if not hasattr(source, "get"):
            return list(source(ids))
        try:
            return [source.get(name) for name in ids]
        except KeyError as error:
            raise InputError(f"LlamaIndex: the vector store has no vector of node {error}") from None
