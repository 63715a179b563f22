"""PyTerrier: transformers that rerank frames or search an index of ours, and its graph for adaptive retrieval."""

from __future__ import annotations

from rnnreranker.base.errors import require

require("pyterrier", "a transformer of PyTerrier", "'rnnreranker[pyterrier]'")

from rnnreranker.adapters.pyterrier.index import (  # noqa: E402
    RnnIndex,
    RnnIndexReranker,
    RnnRetriever,
    RnnTransformer,
)

__all__ = ["RnnIndex", "RnnIndexReranker", "RnnRetriever", "RnnTransformer"]
