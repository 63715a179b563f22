"""Engines of the similarity: compiled by numba, numpy."""
