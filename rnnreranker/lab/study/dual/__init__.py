"""Studies of dual encoders."""
