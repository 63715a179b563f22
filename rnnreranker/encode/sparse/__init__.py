"""Texts to weights of words: learned sparse encoders (SPLADE)."""
