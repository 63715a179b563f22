"""Expanders, one file a method."""

from rnnreranker.methods.expand.base import Expander

__all__ = ["Expander"]
