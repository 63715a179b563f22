"""Late interaction: the documents with the largest MaxSim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.methods.retrieve.base import Hits, Retriever
from rnnreranker.parts.tokens.neighbours import Lexicon
from rnnreranker.parts.tokens.part import QueryTokens, check_token_encoder


@dataclass(frozen=True, eq=False)
class WeighedTokens(QueryTokens):
    """Tokens of queries with their weights, (P,) float64."""

    weights: np.ndarray


class LateRetriever(Retriever):
    """The largest MaxSim (ColBERT), over all documents; no JVM."""

    name = "late"
    needs = frozenset({"query tokens", "tokens"})
    over = "tokens"

    def check(self) -> None:
        """Open the tokens and find the encoder of the queries; errors as `check_token_encoder`."""
        check_token_encoder(self.inputs.tokens)

    def queries(self) -> QueryTokens:
        return self.inputs.query_tokens

    def search(self, queries: Any, hits: int) -> Hits:
        weights = getattr(queries, "weights", None)
        best: Hits = self.part.search(queries.vectors, queries.offsets, hits, self.threads, weights)
        return best

    def queries_again(self, queries: Any, hits: Hits) -> QueryTokens:
        lexicon = Lexicon(self.part)
        tokens, weights = [queries.vectors[:0]], [np.ones(0)]
        for qid, rows in zip(queries.qids, progress(hits[1], unit="queries", what="feedback"), strict=True):
            own = queries.one(qid)
            new, weighed = self.feedback.of_tokens(own, rows, lexicon) if len(rows) else (own, np.ones(len(own)))
            tokens.append(new)
            weights.append(weighed)
        offsets = np.cumsum([len(one) for one in tokens], dtype=np.int64)
        return WeighedTokens(queries.qids, np.concatenate(tokens), offsets, np.concatenate(weights))
