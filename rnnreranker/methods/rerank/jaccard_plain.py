"""rNN without reciprocity."""

from __future__ import annotations

from rnnreranker.methods.rerank.rnn import RnnReranker


class PlainJaccardReranker(RnnReranker):
    """As `RnnReranker`, but R(i) is list(i) itself.

    The extension (tau > 0) takes the first columns of a member's list as its T.
    """

    name = "jaccard-plain"
    reciprocal = False
