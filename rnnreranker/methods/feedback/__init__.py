"""Pseudo-relevance feedback, one file a method."""
