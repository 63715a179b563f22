"""Training: labels or negatives, texts and a model to a better model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base import late_names

if TYPE_CHECKING:
    from rnnreranker.train.params import TrainParams as TrainParams
    from rnnreranker.train.request import Trained as Trained
    from rnnreranker.train.request import TrainRequest as TrainRequest
    from rnnreranker.train.request import train_model as train_model

__getattr__, __dir__ = late_names(__name__)
