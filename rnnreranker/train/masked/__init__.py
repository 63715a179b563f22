"""Training of masked language models."""
