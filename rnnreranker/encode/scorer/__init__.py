"""Trained scorers of candidates: the network on top of a query encoder, and the folder that keeps the two."""
