"""Vectors by docid: Faiss folders, matrices, Lucene indexes, encoded queries."""

from rnnreranker.parts.vectors.source import QueryVectors, open_vectors
from rnnreranker.parts.vectors.stored import VectorSource

__all__ = ["QueryVectors", "VectorSource", "open_vectors"]
