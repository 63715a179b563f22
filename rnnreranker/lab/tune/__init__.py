"""Tuning: which settings suit a query set, and what that is worth on queries the search has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base.late_names import late_names

if TYPE_CHECKING:
    from rnnreranker.lab.tune.joint.request import TuneTrainRequest
    from rnnreranker.lab.tune.joint.training import tune_training
    from rnnreranker.lab.tune.kept_contexts import Contexts
    from rnnreranker.lab.tune.objective import Objective
    from rnnreranker.lab.tune.request import LeaveOutRequest, TuneRequest
    from rnnreranker.lab.tune.reranking import tune_collections, tune_reranker
    from rnnreranker.lab.tune.space import Space
    from rnnreranker.lab.tune.trials import Study, search

_HOMES = {
    "Contexts": "kept_contexts",
    "LeaveOutRequest": "request",
    "Objective": "objective",
    "Space": "space",
    "Study": "trials",
    "TuneRequest": "request",
    "TuneTrainRequest": "joint.request",
    "search": "trials",
    "tune_collections": "reranking",
    "tune_reranker": "reranking",
    "tune_training": "joint.training",
}

__all__ = [
    "Contexts",
    "LeaveOutRequest",
    "Objective",
    "Space",
    "Study",
    "TuneRequest",
    "TuneTrainRequest",
    "search",
    "tune_collections",
    "tune_reranker",
    "tune_training",
]

__getattr__ = late_names(__name__, _HOMES)
