"""Seismic's index of the weights of words, searched approximately."""
