"""Soft relevance labels: what a query's sparse judgements say about its other candidates."""

from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.smooth import smooth_labels
from rnnreranker.labels.soft import Labels, SoftLabels

__all__ = ["LabelParams", "Labels", "SoftLabels", "smooth_labels"]
