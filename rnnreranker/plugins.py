"""What methods of another package derive from, and declare their settings with: the one stable home of these names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base.late_names import late_names

if TYPE_CHECKING:
    from rnnreranker.base.method import Inputs
    from rnnreranker.base.settings import Params, context_setting, setting
    from rnnreranker.encode.named import KnownModel, TextModel
    from rnnreranker.encode.params import CrossEncoderParams, EncoderParams, LateEncoderParams, SparseEncoderParams
    from rnnreranker.lab.study.models.base import StudiedModel
    from rnnreranker.labels.judged import JudgedContext
    from rnnreranker.labels.methods.base import ContextLabeler, Labeler
    from rnnreranker.methods.expand import Expander
    from rnnreranker.methods.feedback import Feedback
    from rnnreranker.methods.rerank import Candidates, Query, Reranker
    from rnnreranker.methods.retrieve import Retriever
    from rnnreranker.parts.base import Part
    from rnnreranker.train.fit import Trained
    from rnnreranker.train.losses.base import (
        BatchLoss,
        CosineLoss,
        GroupLoss,
        Loss,
        PositivesLoss,
        log_shares,
        mean_over,
    )
    from rnnreranker.train.models.base import GroupModel, TrainedModel
    from rnnreranker.train.params import TrainingParams

_HOMES = {
    "BatchLoss": "train.losses.base",
    "Candidates": "methods.rerank",
    "ContextLabeler": "labels.methods.base",
    "CosineLoss": "train.losses.base",
    "CrossEncoderParams": "encode.params",
    "EncoderParams": "encode.params",
    "Expander": "methods.expand",
    "Feedback": "methods.feedback",
    "GroupLoss": "train.losses.base",
    "GroupModel": "train.models.base",
    "Inputs": "base.method",
    "JudgedContext": "labels.judged",
    "KnownModel": "encode.named",
    "Labeler": "labels.methods.base",
    "LateEncoderParams": "encode.params",
    "Loss": "train.losses.base",
    "Params": "base.settings",
    "Part": "parts.base",
    "PositivesLoss": "train.losses.base",
    "Query": "methods.rerank",
    "Reranker": "methods.rerank",
    "Retriever": "methods.retrieve",
    "SparseEncoderParams": "encode.params",
    "StudiedModel": "lab.study.models.base",
    "TextModel": "encode.named",
    "Trained": "train.fit",
    "TrainedModel": "train.models.base",
    "TrainingParams": "train.params",
    "context_setting": "base.settings",
    "log_shares": "train.losses.base",
    "mean_over": "train.losses.base",
    "setting": "base.settings",
}

__all__ = [
    "BatchLoss",
    "Candidates",
    "ContextLabeler",
    "CosineLoss",
    "CrossEncoderParams",
    "EncoderParams",
    "Expander",
    "Feedback",
    "GroupLoss",
    "GroupModel",
    "Inputs",
    "JudgedContext",
    "KnownModel",
    "Labeler",
    "LateEncoderParams",
    "Loss",
    "Params",
    "Part",
    "PositivesLoss",
    "Query",
    "Reranker",
    "Retriever",
    "SparseEncoderParams",
    "StudiedModel",
    "TextModel",
    "Trained",
    "TrainedModel",
    "TrainingParams",
    "context_setting",
    "log_shares",
    "mean_over",
    "setting",
]

__getattr__ = late_names(__name__, _HOMES, "rnnreranker")
