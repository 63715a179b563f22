"""Pseudo-relevance feedback, one file a method."""

from rnnreranker.methods.feedback.base import Feedback

__all__ = ["Feedback"]
