"""Reciprocal nearest neighbour reranking and soft relevance labels for dense retrieval."""

__version__ = "0.1.0"
