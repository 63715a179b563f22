"""Rerankers, one file a method."""
