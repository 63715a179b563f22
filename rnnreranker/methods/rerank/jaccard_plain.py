"""rNN without reciprocity."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnreranker.methods.rerank.rnn import RnnReranker
from rnnreranker.rnn import rnn_similarity


class PlainJaccardReranker(RnnReranker):
    """As `RnnReranker`, but R(i) is list(i) itself.

    The extension (tau > 0) takes the first columns of a member's list as its T.
    """

    name = "jaccard-plain"

    def _similar(self, queries: np.ndarray, candidates: np.ndarray, **how: Any) -> np.ndarray:
        return rnn_similarity(queries, candidates, self.params, reciprocal=False, **how)
