"""Impacts: stored weights of words in documents, and exact search over them without Java."""

from rnnreranker.parts.impacts.part import ImpactSource, QueryImpacts

__all__ = ["ImpactSource", "QueryImpacts"]
