"""Runs: ranked entries of queries, and their files."""

from rnnreranker.runs.columns import FORMATS
from rnnreranker.runs.run import Run

__all__ = ["FORMATS", "Run"]
