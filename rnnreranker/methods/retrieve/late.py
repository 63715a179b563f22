"""Late interaction: the documents with the largest MaxSim."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.feedback.base import second_pass_tokens
from rnnreranker.methods.retrieve.base import Retriever, run_of_rows
from rnnreranker.parts.tokens.neighbours import NPROBE, Lexicon, TokenNeighbours, neighbours_in

if TYPE_CHECKING:
    from rnnreranker.parts.tokens.source import QueryTokens
    from rnnreranker.runs import Run

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
        from rnnreranker.parts.tokens.source import check_token_encoder

        check_token_encoder(self.inputs.tokens)
        self._neighbours()

    def retrieve(self, hits: int) -> Run:
        asked, neighbours = self.inputs.query_tokens, self._neighbours()
        depth, nprobe = self.params.depth, self.params.nprobe
        propose = None if neighbours is None else partial(neighbours.documents, depth=depth, nprobe=nprobe)

        def search(asked: QueryTokens, count: int, weights: np.ndarray | None = None) -> Any:
            return self.inputs.tokens.search(asked.vectors, asked.offsets, count, self.threads, weights, propose)

        weights = None
        if self.feedback is not None:
            lexicon = Lexicon(self.inputs.tokens, neighbours, self.params.nprobe)
            first = search(asked, self.feedback.depth("tokens"))[1]
            asked, weights = second_pass_tokens(asked, first, self.feedback, lexicon)
        return run_of_rows(asked.qids, self.inputs.tokens.docids, *search(asked, hits, weights))

    def _neighbours(self) -> TokenNeighbours | None:
        """The index that proposes candidates; None = exact search."""
        neighbours = neighbours_in(self.inputs.tokens) if self.params.search == "index" else None
        if neighbours is None and (self.params.nprobe, self.params.depth) != (NPROBE, DEPTH):
            raise InputError("nprobe and depth: of search by ivf-pq; here all documents are compared")
        return neighbours
