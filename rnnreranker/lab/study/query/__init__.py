"""Studies of query encoders trained on labels."""
