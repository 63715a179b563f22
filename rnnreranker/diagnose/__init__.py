"""What a run and the vectors of its candidates say, without judgements, about whether reranking is likely to help."""

from rnnreranker.diagnose.diagnosis import diagnose
from rnnreranker.diagnose.overlap import rank_biased_overlap
from rnnreranker.diagnose.verdict import verdict

__all__ = ["diagnose", "rank_biased_overlap", "verdict"]
