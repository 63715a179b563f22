"""Expanders: a run in, a run with more candidates out; one file a method."""

from rnnreranker.methods.expand.base import Expander

__all__ = ["Expander"]
