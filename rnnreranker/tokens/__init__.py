"""Tokens: a vector for every token of the documents on disk, and search by MaxSim."""

from rnnreranker.tokens.params import TokenParams
from rnnreranker.tokens.token_source import TokenSource

__all__ = ["TokenParams", "TokenSource"]
