"""Hard negatives without likely positives."""
