"""Evaluation by ir-measures, with protocols and statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base import late_names

if TYPE_CHECKING:
    from rnnreranker.evaluate.comparison import compare as compare
    from rnnreranker.evaluate.evaluating import evaluate_runs as evaluate_runs
    from rnnreranker.evaluate.scores import Scores as Scores
    from rnnreranker.evaluate.scores import evaluate as evaluate

__getattr__, __dir__ = late_names(__name__)
