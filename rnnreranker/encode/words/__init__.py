"""Texts to words, and weights of words in context (BERT-Scorer, paper 004)."""
