"""Impacts: the weights of words in documents on disk, and exact search over them without Java."""

from rnnreranker.parts.impacts.source import ImpactSource, QueryImpacts

__all__ = ["ImpactSource", "QueryImpacts"]
