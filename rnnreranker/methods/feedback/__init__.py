"""Pseudo-relevance feedback: the first documents of a search make a second query. One file a method."""

from rnnreranker.methods.feedback.base import Feedback, second_pass_vectors

__all__ = ["Feedback", "second_pass_vectors"]
