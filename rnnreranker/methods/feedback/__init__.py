"""Pseudo-relevance feedback, one file a method."""

from rnnreranker.methods.feedback.base import Feedback, second_pass_vectors

__all__ = ["Feedback", "second_pass_vectors"]
