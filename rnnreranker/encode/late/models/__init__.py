"""The late-interaction encoders that have a name of their own, one a file."""
