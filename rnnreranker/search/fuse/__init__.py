"""Runs of the same queries to one, and runs of passages to runs of documents: from files or from memory."""

from rnnreranker.search.fuse.fusing import fuse_runs

__all__ = ["fuse_runs"]
