"""Tuning: settings for a query set, and their value on queries that the search did not see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base import late_names

if TYPE_CHECKING:
    from rnnreranker.lab.tune.request import TuneRequest as TuneRequest
    from rnnreranker.lab.tune.request import TuneTrainRequest as TuneTrainRequest
    from rnnreranker.lab.tune.reranking import tune_reranker as tune_reranker
    from rnnreranker.lab.tune.training import tune_training as tune_training

__getattr__, __dir__ = late_names(__name__)
