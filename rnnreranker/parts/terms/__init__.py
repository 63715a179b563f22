"""Words: of sentences, in English and Chinese; how often documents have them; TF-IDF and BM25 of them without Java."""
