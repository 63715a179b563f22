"""Texts to vectors: dense encoders."""
