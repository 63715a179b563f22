"""Evaluation: ir-measures measures; here are the judgement protocols, the statistics and the pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base.late_names import late_names

if TYPE_CHECKING:
    from rnnreranker.evaluate.comparison import Comparison, compare
    from rnnreranker.evaluate.evaluating import Evaluation, evaluate_runs
    from rnnreranker.evaluate.measures import parse_measures
    from rnnreranker.evaluate.protocols import PROTOCOLS
    from rnnreranker.evaluate.scores import Scores, evaluate

_HOMES = {
    "Comparison": "comparison",
    "Evaluation": "evaluating",
    "PROTOCOLS": "protocols",
    "Scores": "scores",
    "compare": "comparison",
    "evaluate": "scores",
    "evaluate_runs": "evaluating",
    "parse_measures": "measures",
}

__all__ = [
    "PROTOCOLS",
    "Comparison",
    "Evaluation",
    "Scores",
    "compare",
    "evaluate",
    "evaluate_runs",
    "parse_measures",
]

__getattr__ = late_names(__name__, _HOMES)
