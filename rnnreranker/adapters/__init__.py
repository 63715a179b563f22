"""Other tools' forms of results: Pyserini's searchers, rank_llm's requests, PyTerrier's data frames."""

from rnnreranker.adapters.pyserini import RnnSearcher
from rnnreranker.adapters.pyterrier import RnnTransformer
from rnnreranker.adapters.rank_llm import inputs_of, read_requests, rerank_requests, write_requests

__all__ = ["RnnSearcher", "RnnTransformer", "inputs_of", "read_requests", "rerank_requests", "write_requests"]
