"""Training of cross-encoders."""
