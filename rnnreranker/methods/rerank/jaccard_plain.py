"""Jaccard similarity over plain nearest neighbours: rNN without reciprocity."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnreranker.methods.rerank.rnn import RnnReranker
from rnnreranker.rnn import rnn_similarity
from rnnreranker.rnn.contexts import PlainNeighbours


class PlainJaccardReranker(RnnReranker):
    """As `RnnReranker`, but R(i) is list(i) itself, which shows what reciprocity is worth.

    The extension (tau > 0) takes the first columns of a member's list as its T, not the reciprocal ones among them.

    Args and Raises: as `Reranker`; params: the rNN parameters.
    """

    name = "jaccard-plain"

    def _similar(self, queries: np.ndarray, candidates: np.ndarray, **how: Any) -> np.ndarray:
        return rnn_similarity(queries, candidates, self.params, engine=PlainNeighbours(), **how)
