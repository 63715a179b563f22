"""Trained scorers of candidates: a query encoder with a network on top, its folder, and the torch modules of both."""
