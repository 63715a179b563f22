"""Impacts: the weights of words in documents on disk, and exact search over them without Java."""

from rnnreranker.impacts.params import ImpactParams
from rnnreranker.impacts.source import ImpactSource

__all__ = ["ImpactParams", "ImpactSource"]
