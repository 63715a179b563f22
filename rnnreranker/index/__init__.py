"""Documents to indexes: a Faiss folder in Pyserini's layout, a Lucene index for BM25, and the texts."""
