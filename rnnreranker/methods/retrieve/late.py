"""Late interaction: the documents with the largest MaxSim."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, setting
from rnnreranker.methods.feedback.base import second_pass_tokens
from rnnreranker.methods.retrieve.base import Retriever, run_of_rows
from rnnreranker.parts.tokens.lexicon import Lexicon
from rnnreranker.parts.tokens.neighbours import NPROBE, TokenNeighbours, neighbours_in

if TYPE_CHECKING:
    from rnnreranker.parts.tokens.source import QueryTokens
    from rnnreranker.runs import Run

OF_NEIGHBOURS = ("nprobe", "depth")


@dataclass(frozen=True)
class LateSearchParams(Params):
    """Settings of the search by tokens."""

    search: Literal["index", "exact"] = setting(
        "index",
        "engine: index, what the index was made for (index --parts tokens:search=…); exact, MaxSim with all documents",
    )
    nprobe: int = setting(NPROBE, "lists of tokens searched for a query's token (ivf-pq)", at_least=1)
    depth: int = setting(
        1024,
        "nearest tokens of a query's token, whose documents are candidates (ivf-pq)",
        at_least=1,
    )
    recall_sample: int = setting(
        20,
        "queries searched exactly too, to measure recall (ivf-pq)",
        at_least=0,
        tunable=False,
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
        source, asked, weights = self.inputs.tokens, self.inputs.query_tokens, None
        neighbours = self._neighbours()

        def search(count: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
            if neighbours is None:
                return source.search(asked.vectors, asked.offsets, count, self.threads, weights)
            how = {"depth": self.params.depth, "nprobe": self.params.nprobe}
            return neighbours.search(asked.vectors, asked.offsets, count, self.threads, weights, **how)

        if self.feedback is not None:
            lexicon = Lexicon(source, neighbours, self.params.nprobe)
            asked, weights = second_pass_tokens(asked, search(self.feedback.depth("tokens"))[1], self.feedback, lexicon)
        scores, rows = search(hits)
        if neighbours is not None:
            self._tell(asked, weights, rows, hits)
        return run_of_rows(asked.qids, source.docids, scores, rows)

    def _neighbours(self) -> TokenNeighbours | None:
        """The index that proposes candidates; None = exact search."""
        neighbours = neighbours_in(self.inputs.tokens) if self.params.search == "index" else None
        if neighbours is not None:
            return neighbours
        usual = {field.name: field.default for field in dataclasses.fields(LateSearchParams)}
        if changed := [name for name in OF_NEIGHBOURS if getattr(self.params, name) != usual[name]]:
            raise InputError(f"{' and '.join(changed)}: of search by ivf-pq; here all documents are compared")
        return None

    def _tell(self, asked: QueryTokens, weights: np.ndarray | None, rows: list[Any], hits: int) -> None:
        """Report the share of the exact run that a sample of the queries has."""
        source, count = self.inputs.tokens, len(rows)
        sample = np.unique(np.linspace(0, count - 1, min(count, self.params.recall_sample)).astype(np.int64))
        shares = []
        for number in sample.tolist():
            part = slice(asked.offsets[number], asked.offsets[number + 1])
            own, weighed = asked.vectors[part], None if weights is None else weights[part]
            [exact] = source.search(own, np.array([0, len(own)]), hits, self.threads, weighed)[1]
            shares += [np.isin(exact, rows[number]).mean()] if len(exact) else []
        if shares:
            of = f"the {hits} best of {len(shares)} of {counted(count, 'query', 'queries')}"
            say(f"late, approximate by ivf-pq: found {np.mean(shares):.1%} of {of}")
