"""Documents to indexes: a Faiss folder in Pyserini's layout, a Lucene index for BM25, and the texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base import late_names

if TYPE_CHECKING:
    from rnnreranker.index.build import write_index as write_index
    from rnnreranker.index.make import make_index as make_index
    from rnnreranker.parts.bm25.part import build_bm25 as build_bm25
    from rnnreranker.parts.texts import texts_of as texts_of

__getattr__, __dir__ = late_names(__name__)
