"""Vectors by docid: Faiss folders, matrices, encoded queries and encoders behind one small protocol."""

from rnnreranker.parts.vectors.source import QueryVectors, open_vectors
from rnnreranker.parts.vectors.stored import VectorSource

__all__ = ["QueryVectors", "VectorSource", "open_vectors"]
