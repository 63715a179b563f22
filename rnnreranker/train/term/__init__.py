"""Training of term scorers (BERT-Scorer)."""
