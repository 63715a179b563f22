"""Why a query's candidates moved: its neighbourhood taken apart, drawn, and written as a page."""

from rnnreranker.explain.neighbourhood import Neighbourhood, neighbourhood
from rnnreranker.explain.page import file_name, write_explanation

__all__ = ["Neighbourhood", "file_name", "neighbourhood", "write_explanation"]
