"""Recovery of hidden positives: does similarity to a known positive rank the others better than the query does?"""

from rnnreranker.lab.recover.recovery import recover

__all__ = ["recover"]
