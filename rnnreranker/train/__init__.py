"""CODER training: a query encoder fine-tuned against fixed document vectors and many candidates a query."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rnnreranker.train.params import TrainParams
    from rnnreranker.train.query.training import Trained, train_encoder

_HOMES = {"TrainParams": "params", "Trained": "query.training", "train_encoder": "query.training"}

__all__ = ["TrainParams", "Trained", "train_encoder"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
