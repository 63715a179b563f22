"""Hidden positives recovered: does similarity to one known positive find the others better than the query does?"""

from rnnreranker.lab.recover.rankings import Visible, visible_positives
from rnnreranker.lab.recover.recovering import recover
from rnnreranker.lab.recover.recovery import Recovery, measure_recovery

__all__ = ["Recovery", "Visible", "measure_recovery", "recover", "visible_positives"]
