"""Evaluation by ir-measures, with protocols and statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base.late_names import late_names

if TYPE_CHECKING:
    from rnnreranker.evaluate.comparison import Comparison as Comparison
    from rnnreranker.evaluate.comparison import compare as compare
    from rnnreranker.evaluate.evaluating import Evaluation as Evaluation
    from rnnreranker.evaluate.evaluating import evaluate_runs as evaluate_runs
    from rnnreranker.evaluate.measures import parse_measures as parse_measures
    from rnnreranker.evaluate.protocols import PROTOCOLS as PROTOCOLS
    from rnnreranker.evaluate.scores import Scores as Scores
    from rnnreranker.evaluate.scores import evaluate as evaluate

__getattr__, __dir__ = late_names(__name__)
