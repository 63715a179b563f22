"""What reranking, training and indexing cost on this machine, beside what cannot be done without and beside peers."""

from rnnreranker.lab.bench.benchmark import bench

__all__ = ["bench"]
