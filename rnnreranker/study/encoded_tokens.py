"""Search by the tokens of a collection, encoded for it alone: what a study makes of each encoder that it trains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.method import Inputs
from rnnreranker.retrieve.base import run_of_rows
from rnnreranker.tokens.query_tokens import QueryTokens
from rnnreranker.tokens.token_files import FOLDER, Block, write_tokens
from rnnreranker.tokens.token_source import TokenSource

if TYPE_CHECKING:
    from rnnreranker.encode.late import LateEncoder
    from rnnreranker.runs import Run

BLOCK = 1024  # documents whose tokens are encoded together


class TokenSearch:
    """The tokens of documents by an encoder, on disk as an index keeps them.

    Args:
        encoder: of documents and queries.
        documents: docid → text.
        folder: is made, and its files are used for as long as this is.
    """

    def __init__(self, encoder: LateEncoder, documents: Mapping[str, str], folder: Path) -> None:
        self._encoder = encoder
        texts = list(documents.values())
        blocks = [
            encoder.encode_documents(texts[first : first + BLOCK], threads=1) for first in range(0, len(texts), BLOCK)
        ]

        def halves() -> Iterator[Block]:
            for block in blocks:
                yield block.vectors.astype(np.float16), block.offsets, block.ids

        folder.mkdir(parents=True)
        (folder / "docid").write_text("".join(f"{docid}\n" for docid in documents), encoding="utf-8")
        write_tokens(folder / FOLDER, halves, encoder.dimension)
        described = {"name": encoder.name, "settings": encoder.params.to_dict(), "digest": encoder.digest}
        self.source = TokenSource(folder, {"encoder": described})

    def queries(self, topics: Mapping[str, str]) -> QueryTokens:
        """The tokens of queries."""
        found = self._encoder.encode_queries(list(topics.values()), threads=1)
        return QueryTokens(tuple(topics), found.vectors, found.offsets)

    def inputs(self, topics: Mapping[str, str]) -> Inputs:
        """What methods read that need tokens."""
        return Inputs(topics=dict(topics), tokens=self.source, query_tokens=self.queries(topics))

    def best(self, topics: Mapping[str, str], hits: int, candidates: Mapping[str, Sequence[str]] | None = None) -> Run:
        """The run of the documents with the largest MaxSim: of all documents, or of a query's candidates.

        Documents without tokens are not found among all; as candidates they score 0.
        """
        asked = self.queries(topics)
        if candidates is None:
            scores, rows = self.source.search(asked.vectors, asked.places, hits, threads=1)
            return run_of_rows(asked.qids, self.source.docids, scores, rows)
        found = []
        for qid in asked.qids:
            own = self.source.rows(candidates.get(qid, ()))
            tokens = asked.one(qid)
            of_own = self.source.scores(tokens, np.array([0, len(tokens)]), own, threads=1)[0]
            found.append(self.source.best(of_own, own, hits))
        scores, rows = ([part[side] for part in found] for side in (0, 1))
        return run_of_rows(asked.qids, self.source.docids, scores, rows)
