"""Retrievers, one file a method."""

from rnnreranker.methods.retrieve.base import Retriever

__all__ = ["Retriever"]
