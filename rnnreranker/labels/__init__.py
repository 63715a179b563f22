"""Soft relevance labels: what a query's sparse judgements say about its other candidates."""

from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.soft import Labels, SoftLabels
from rnnreranker.labels.targets import smooth_labels

__all__ = ["LabelParams", "Labels", "SoftLabels", "smooth_labels"]
