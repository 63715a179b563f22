"""Adapters: Pyserini's searchers, PyTerrier's frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base import late_names

if TYPE_CHECKING:
    from rnnreranker.adapters.pyserini import RnnSearcher as RnnSearcher
    from rnnreranker.adapters.pyterrier import RnnTransformer as RnnTransformer

__getattr__, __dir__ = late_names(__name__)
