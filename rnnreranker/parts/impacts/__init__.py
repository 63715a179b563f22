"""Impacts: the weights of words in documents on disk, and exact search over them without Java."""

from rnnreranker.parts.impacts.part import ImpactSource, QueryImpacts

__all__ = ["ImpactSource", "QueryImpacts"]
