"""Texts to words, and words to weights predicted in their context (BERT-Scorer, paper 004)."""
