"""Word counts of documents; TF-IDF and BM25 of them without Java."""
