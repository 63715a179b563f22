"""Training of query encoders on soft labels (CODER)."""
