"""Training of sparse encoders."""
