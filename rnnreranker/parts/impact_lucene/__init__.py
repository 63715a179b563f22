"""Pyserini's impact index of the weights of words, searched by Lucene."""
