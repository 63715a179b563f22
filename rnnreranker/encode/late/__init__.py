"""Texts to a vector for every token: late-interaction encoders (ColBERT)."""
