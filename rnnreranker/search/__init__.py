"""Retrieval: topics in, a run out; dense by Faiss alone, BM25 and hybrid through Pyserini."""
