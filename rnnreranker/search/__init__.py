"""Search: topics to a run; dense by Faiss, BM25 by Pyserini."""
