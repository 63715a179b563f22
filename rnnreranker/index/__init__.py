"""Documents to indexes: a Faiss folder as Pyserini lays it out, a Lucene index for BM25, and the texts beside them."""

from __future__ import annotations

from typing import Any

__all__ = ["build_bm25", "make_index", "texts_of", "write_index"]

_HOMES = {
    "build_bm25": "rnnreranker.parts.bm25.part",
    "write_index": "rnnreranker.index.build",
    "make_index": "rnnreranker.index.make",
    "texts_of": "rnnreranker.parts.texts",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
