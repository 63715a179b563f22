"""Why a query's candidates moved: its neighbourhood taken apart, drawn, and written as a page."""

from rnnreranker.search.explain.contexts import graph_neighbourhood, neighbourhood
from rnnreranker.search.explain.neighbourhood import Neighbourhood
from rnnreranker.search.explain.page import drawing, file_name, write_explanation

__all__ = ["Neighbourhood", "drawing", "file_name", "graph_neighbourhood", "neighbourhood", "write_explanation"]
