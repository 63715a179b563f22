"""Hard negatives without likely positives."""

from rnnreranker.labels.negatives.filters import FILTERS, Pool, discarded, pools, scored, threshold_at

__all__ = ["FILTERS", "Pool", "discarded", "pools", "scored", "threshold_at"]
