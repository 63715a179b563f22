"""Diagnosis of a run and the vectors of its candidates, without judgements: is reranking likely to help?"""

from rnnreranker.lab.diagnose.diagnosis import diagnose, measure_run
from rnnreranker.lab.diagnose.measures import rank_biased_overlap
from rnnreranker.lab.diagnose.verdict import verdict

__all__ = ["diagnose", "measure_run", "rank_biased_overlap", "verdict"]
