"""Training of dual encoders."""
