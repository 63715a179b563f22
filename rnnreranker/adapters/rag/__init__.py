"""RAG frameworks: a component of each, which reranks by reciprocal nearest neighbours with vectors that are there.

Names load on first use, and with them the framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base.late_names import late_names

if TYPE_CHECKING:
    from rnnreranker.adapters.rag.haystack import HaystackRnnReranker as HaystackRnnReranker
    from rnnreranker.adapters.rag.langchain import LangChainRnnRetriever as LangChainRnnRetriever
    from rnnreranker.adapters.rag.llamaindex import LlamaIndexRnnReranker as LlamaIndexRnnReranker

__getattr__, __dir__ = late_names(__name__)
