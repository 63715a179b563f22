"""Rerankers: a run in, a run out; `rnn` by reciprocal nearest neighbours, and the methods it is compared with."""

from rnnreranker.rerank.protocol import Reranker
from rnnreranker.rerank.registry import RERANKERS, make_params, make_reranker, params_of
from rnnreranker.rerank.rnn import RnnReranker

__all__ = ["RERANKERS", "Reranker", "RnnReranker", "make_params", "make_reranker", "params_of"]
