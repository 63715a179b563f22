"""Diagnosis of a run and the vectors of its candidates, without judgements: is reranking likely to help?"""

from rnnreranker.lab.diagnose.diagnosis import DiagnoseRequest, diagnose
from rnnreranker.lab.diagnose.verdict import verdict

__all__ = ["DiagnoseRequest", "diagnose", "verdict"]
