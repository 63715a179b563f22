"""Rerankers, one file a method."""

from rnnreranker.methods.rerank.base import Candidates, Query, Reranker, make_reranker
from rnnreranker.methods.rerank.rnn import RnnReranker

__all__ = ["Candidates", "Query", "Reranker", "RnnReranker", "make_reranker"]
