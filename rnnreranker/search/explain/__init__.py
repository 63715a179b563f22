"""Why a query's candidates moved: its neighbourhood taken apart, drawn, and written as a page."""

from rnnreranker.search.explain.neighbourhood import Neighbourhood, graph_neighbourhood, neighbourhood, taken_apart
from rnnreranker.search.explain.page import drawing, explain, file_name, write_explanation

__all__ = [
    "Neighbourhood",
    "drawing",
    "explain",
    "file_name",
    "graph_neighbourhood",
    "neighbourhood",
    "taken_apart",
    "write_explanation",
]
