"""Late interaction: the documents with the largest MaxSim."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.retrieve.base import Hits, Retriever
from rnnreranker.parts.tokens.neighbours import NPROBE, Lexicon, TokenNeighbours, neighbours_in
from rnnreranker.parts.tokens.part import QueryTokens, check_token_encoder

DEPTH = 1024


@dataclass(frozen=True)
class LateSearchParams(Params):
    """Settings of the search by tokens."""

    search: Literal["index", "exact"] = setting(
        "index",
        "engine: index, what the index was made for (index --parts tokens:search=…); exact, MaxSim with all documents",
    )
    nprobe: int = setting(NPROBE, "lists of tokens searched for a query's token (ivf-pq)", at_least=1)
    depth: int = setting(
        DEPTH,
        "nearest tokens of a query's token, whose documents are candidates (ivf-pq)",
        at_least=1,
    )


@dataclass(frozen=True, eq=False)
class WeighedTokens(QueryTokens):
    """Tokens of queries with their weights, (P,) float64."""

    weights: np.ndarray


class LateRetriever(Retriever):
    """The largest MaxSim (ColBERT), over all documents or over those with tokens near the query's; no JVM."""

    name = "late"
    needs = frozenset({"query tokens", "tokens"})
    over = "tokens"
    Params = LateSearchParams

    def check(self) -> None:
        """Open the tokens and find the encoder of the queries.

        Raises:
            InputError: no tokens, a changed encoder, settings of another index; UnavailableError: the encoder is not
                here.
        """
        check_token_encoder(self.inputs.tokens)
        self._neighbours()

    def queries(self) -> QueryTokens:
        return self.inputs.query_tokens

    def search(self, queries: Any, hits: int) -> Hits:
        propose, neighbours, weights = None, self._neighbours(), getattr(queries, "weights", None)
        if neighbours is not None:
            propose = partial(neighbours.documents, depth=self.params.depth, nprobe=self.params.nprobe)
        return self.part.search(queries.vectors, queries.offsets, hits, self.threads, weights, propose)

    def queries_again(self, queries: Any, hits: Hits) -> QueryTokens:
        lexicon = Lexicon(self.part, self._neighbours(), self.params.nprobe)
        tokens, weights = [queries.vectors[:0]], [np.ones(0)]
        for qid, rows in zip(queries.qids, progress(hits[1], unit="queries", what="feedback"), strict=True):
            own = queries.one(qid)
            new, weighed = self.feedback.of_tokens(own, rows, lexicon) if len(rows) else (own, np.ones(len(own)))
            tokens.append(new)
            weights.append(weighed)
        offsets = np.cumsum([len(one) for one in tokens], dtype=np.int64)
        return WeighedTokens(queries.qids, np.concatenate(tokens), offsets, np.concatenate(weights))

    def _neighbours(self) -> TokenNeighbours | None:
        """The index that proposes candidates; None = exact search."""
        neighbours = neighbours_in(self.inputs.tokens) if self.params.search == "index" else None
        if neighbours is None and (self.params.nprobe, self.params.depth) != (NPROBE, DEPTH):
            raise InputError("nprobe and depth: of search by ivf-pq; here all documents are compared")
        return neighbours
