"""Vector stores: the hits of a query, reranked. Names, and the stores' packages, load on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base import late_names

if TYPE_CHECKING:
    from rnnreranker.adapters.stores.lancedb import LanceDBRnnReranker as LanceDBRnnReranker
    from rnnreranker.adapters.stores.results import rerank_chroma as rerank_chroma
    from rnnreranker.adapters.stores.results import rerank_duckdb as rerank_duckdb
    from rnnreranker.adapters.stores.results import rerank_faiss as rerank_faiss
    from rnnreranker.adapters.stores.results import rerank_milvus as rerank_milvus
    from rnnreranker.adapters.stores.results import rerank_qdrant as rerank_qdrant

__getattr__, __dir__ = late_names(__name__)
