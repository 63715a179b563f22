"""Documents to indexes: a Faiss folder as Pyserini lays it out, a Lucene index for BM25, and the texts beside them."""

from __future__ import annotations

from rnnreranker.base.late_names import late_names

__all__ = ["build_bm25", "make_index", "texts_of", "write_index"]

_HOMES = {
    "build_bm25": "parts.bm25.part",
    "write_index": "index.build",
    "make_index": "index.make",
    "texts_of": "parts.texts",
}

__getattr__ = late_names(__name__, _HOMES, "rnnreranker")
