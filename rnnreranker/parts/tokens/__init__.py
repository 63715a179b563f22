"""Tokens: a vector for every token of the documents on disk, and search by MaxSim."""
