"""Methods, one a file: retrievers, feedback, expanders, rerankers."""
