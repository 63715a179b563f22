"""Soft relevance labels: what a query's sparse judgements say about its other candidates."""

from rnnreranker.labels.soft import Labels, SoftLabels

__all__ = ["Labels", "SoftLabels"]
