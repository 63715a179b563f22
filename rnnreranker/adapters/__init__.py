"""Adapters: Pyserini's searchers, rank_llm's requests, PyTerrier's frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base import late_names

if TYPE_CHECKING:
    from rnnreranker.adapters.pyserini import RnnSearcher as RnnSearcher
    from rnnreranker.adapters.pyterrier import RnnTransformer as RnnTransformer
    from rnnreranker.adapters.rank_llm import read_requests as read_requests
    from rnnreranker.adapters.rank_llm import rerank_requests as rerank_requests
    from rnnreranker.adapters.rank_llm import write_requests as write_requests

__getattr__, __dir__ = late_names(__name__)
