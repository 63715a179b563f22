"""Training: labels or negatives, texts and a model to a better model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base.late_names import late_names

if TYPE_CHECKING:
    from rnnreranker.train.fit import Trained
    from rnnreranker.train.query.params import TrainParams
    from rnnreranker.train.query.training import train_encoder
    from rnnreranker.train.request import TrainRequest
    from rnnreranker.train.training import train_model

_HOMES = {
    "TrainParams": "query.params",
    "TrainRequest": "request",
    "Trained": "fit",
    "train_encoder": "query.training",
    "train_model": "training",
}

__all__ = ["TrainParams", "TrainRequest", "Trained", "train_encoder", "train_model"]

__getattr__ = late_names(__name__, _HOMES)
