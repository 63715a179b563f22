"""The graph of a collection: the nearest other documents of every document, memory-mapped."""

from rnnreranker.parts.neighbours.graph import NeighbourGraph, open_neighbours

__all__ = ["NeighbourGraph", "open_neighbours"]
