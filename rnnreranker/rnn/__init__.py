"""The mathematics of reciprocal nearest neighbours: numpy in, numpy out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base import late_names

if TYPE_CHECKING:
    from rnnreranker.rnn.api import jaccard_similarity as jaccard_similarity
    from rnnreranker.rnn.api import rnn_similarity as rnn_similarity
    from rnnreranker.rnn.contexts import warm_up as warm_up
    from rnnreranker.rnn.params import RnnParams as RnnParams

__getattr__, __dir__ = late_names(__name__)
