"""Names to documents, topics and qrels: files, ir_datasets ids, the built-in collection."""
