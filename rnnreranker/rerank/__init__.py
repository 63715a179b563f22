"""Rerankers: a run in, a run out; `rnn` by reciprocal nearest neighbours."""

from rnnreranker.rerank.protocol import Reranker
from rnnreranker.rerank.rnn import RnnReranker

__all__ = ["RERANKERS", "Reranker", "RnnReranker"]

RERANKERS = ("rnn", "none")  # what --rerank takes
