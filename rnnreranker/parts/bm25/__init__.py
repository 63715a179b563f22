"""The Lucene index for BM25."""
