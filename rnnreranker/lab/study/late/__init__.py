"""Studies of late-interaction encoders."""
