"""The mathematics of reciprocal nearest neighbours: numpy in, numpy out."""

from rnnreranker.rnn.late.maxsim import maxsim
from rnnreranker.rnn.params import RnnParams
from rnnreranker.rnn.similarity import jaccard_similarity, rnn_similarity

__all__ = ["RnnParams", "jaccard_similarity", "maxsim", "rnn_similarity"]
