"""The kinds of models that training makes, one a file."""
