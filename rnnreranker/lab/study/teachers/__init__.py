"""What teaches arms of studies: cross-encoders, tokens of an encoder, term scorers."""
