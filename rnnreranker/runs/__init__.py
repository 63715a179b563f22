"""Runs: for every query an ordered list of (docid, score); TREC and MS MARCO files."""

from rnnreranker.runs.columns import FORMATS
from rnnreranker.runs.run import Run

__all__ = ["FORMATS", "Run"]
