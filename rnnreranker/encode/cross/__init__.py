"""Pairs of a query and a document to scores: cross-encoders."""
