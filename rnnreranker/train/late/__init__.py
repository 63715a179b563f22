"""Training of late-interaction encoders."""
