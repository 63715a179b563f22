"""Pseudo-relevance feedback: the first documents of a search make the query of a second; one file a method."""

from rnnreranker.methods.feedback.base import Feedback, searched_twice

__all__ = ["Feedback", "searched_twice"]
