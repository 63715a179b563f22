"""The reasons why a query's candidates moved: its neighbourhood, a picture, and a page."""

from rnnreranker.search.explain.neighbourhood import Neighbourhood, graph_neighbourhood, neighbourhood, taken_apart
from rnnreranker.search.explain.page import drawing, explain, explanation, file_name

__all__ = [
    "Neighbourhood",
    "drawing",
    "explain",
    "explanation",
    "file_name",
    "graph_neighbourhood",
    "neighbourhood",
    "taken_apart",
]
