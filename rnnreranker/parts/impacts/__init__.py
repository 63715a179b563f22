"""Impacts: the weights of words in documents on disk, and exact search over them without Java."""

from rnnreranker.parts.impacts.params import ImpactParams
from rnnreranker.parts.impacts.queries import QueryImpacts
from rnnreranker.parts.impacts.source import ImpactSource

__all__ = ["ImpactParams", "ImpactSource", "QueryImpacts"]
