"""Recovery of hidden positives: does similarity to a known positive rank the others better than the query does?"""

from rnnreranker.lab.recover.recovery import measure_recovery, recover
from rnnreranker.lab.recover.similarities import Visible, visible_positives

__all__ = ["Visible", "measure_recovery", "recover", "visible_positives"]
