"""Retrievers, one file a method."""
