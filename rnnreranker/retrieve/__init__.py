"""Retrievers: topics in, a run out; one file a method."""

from rnnreranker.retrieve.base import Retriever

__all__ = ["Retriever"]
