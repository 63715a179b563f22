"""The mathematics of reciprocal nearest neighbours: numpy in, numpy out."""

from rnnreranker.rnn.api import jaccard_similarity, rnn_similarity
from rnnreranker.rnn.contexts import warm_up
from rnnreranker.rnn.params import RnnParams

__all__ = ["RnnParams", "jaccard_similarity", "rnn_similarity", "warm_up"]
