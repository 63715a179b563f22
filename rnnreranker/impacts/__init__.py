"""Impacts: the weights of words in documents on disk, and exact search over them without Java."""

from rnnreranker.impacts.impact_source import ImpactSource
from rnnreranker.impacts.params import ImpactParams
from rnnreranker.impacts.query_impacts import QueryImpacts

__all__ = ["ImpactParams", "ImpactSource", "QueryImpacts"]
