"""RAG frameworks: a reranking component for each. Names, and their frameworks, load on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base import late_names

if TYPE_CHECKING:
    from rnnreranker.adapters.rag.haystack import HaystackRnnReranker as HaystackRnnReranker
    from rnnreranker.adapters.rag.langchain import LangChainRnnRetriever as LangChainRnnRetriever
    from rnnreranker.adapters.rag.llamaindex import LlamaIndexRnnReranker as LlamaIndexRnnReranker

__getattr__, __dir__ = late_names(__name__)
