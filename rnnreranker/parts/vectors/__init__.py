"""Vectors by docid: Faiss folders, matrices, encoded queries and encoders behind one small protocol."""

from rnnreranker.parts.vectors.source import QueryVectors, VectorSource, open_vectors

__all__ = ["QueryVectors", "VectorSource", "open_vectors"]
