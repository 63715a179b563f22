"""The command that fuses runs; what it computes with is `rnnreranker.runs.fuse`."""
