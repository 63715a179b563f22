"""Hidden positives recovered: does similarity to one known positive find the others better than the query does?"""

from rnnreranker.lab.recover.recovery import Recovery, measure_recovery, recover
from rnnreranker.lab.recover.similarities import Visible, visible_positives

__all__ = ["Recovery", "Visible", "measure_recovery", "recover", "visible_positives"]
