"""Training: labels or negatives, texts and a model to a better model."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
