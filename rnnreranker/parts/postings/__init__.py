"""Weights and counts of the words of documents, and exact search over them without Java."""
