"""Search by the tokens of a collection, encoded for it alone: what a study makes of each encoder that it trains."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.files import folder_written_whole, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.methods.feedback.base import second_pass_tokens
from rnnreranker.methods.retrieve.base import run_of_rows
from rnnreranker.parts.tokens.lexicon import Lexicon
from rnnreranker.parts.tokens.queries import QueryTokens
from rnnreranker.parts.tokens.source import Block, TokenSource, write_tokens

if TYPE_CHECKING:
    from rnnreranker.encode.late.encoder import LateEncoder
    from rnnreranker.methods.feedback import Feedback
    from rnnreranker.runs import Run

BLOCK = 1024  # documents whose tokens are encoded together
SECONDS = "seconds.json"  # that they took


class TokenSearch:
    """The tokens of documents by an encoder, on disk as an index keeps them.

    Args:
        encoder: of documents and queries.
        documents: docid → text.
        folder: is made, and its files are used for as long as this is; where it is, it was made so, and is used.

    Attributes:
        source: the tokens.
        seconds: in which one thread encoded the documents, also where that was before.
    """

    def __init__(self, encoder: LateEncoder, documents: Mapping[str, str], folder: Path) -> None:
        self._encoder = encoder
        if not folder.is_dir():
            with folder_written_whole(folder) as made:
                self._make(documents, made)
        self.seconds = float(read_json(folder / SECONDS, "seconds that tokens took", "delete its folder"))
        described = {"name": encoder.name, "settings": encoder.params.to_dict(), "digest": encoder.digest}
        self.source = TokenSource(folder, {"encoder": described})

    def _make(self, documents: Mapping[str, str], folder: Path) -> None:
        begun, texts = time.perf_counter(), list(documents.values())
        blocks = [
            self._encoder.encode_documents(texts[first : first + BLOCK], threads=1)
            for first in range(0, len(texts), BLOCK)
        ]

        def halves() -> Iterator[Block]:
            for block in blocks:
                yield block.vectors.astype(np.float16), block.offsets, block.ids

        (folder / "docid").write_text("".join(f"{docid}\n" for docid in documents), encoding="utf-8")
        write_tokens(folder / TokenSource.files, halves, self._encoder.dimension)
        write_json(folder / SECONDS, time.perf_counter() - begun)

    def queries(self, topics: Mapping[str, str]) -> QueryTokens:
        """The tokens of queries."""
        encoded = self._encoder.encode_queries(list(topics.values()), threads=1)
        return QueryTokens(tuple(topics), encoded.vectors, encoded.offsets)

    def best(
        self,
        topics: Mapping[str, str],
        hits: int,
        candidates: Mapping[str, Sequence[str]] | None = None,
        feedback: Feedback | None = None,
    ) -> Run:
        """The run of the documents with the largest MaxSim: of all documents, or of a query's candidates.

        Documents without tokens are not found among all; as candidates they score 0.

        Args:
            topics: qid → text; hits: per query; candidates: qid → docids.
            feedback: makes second queries of the first ones and of what they find; the run is of these.
        """
        asked, weights = self.queries(topics), None
        if feedback is not None:
            first = self._found(asked, weights, feedback.depth("tokens"), candidates)[1]
            asked, weights = second_pass_tokens(asked, first, feedback, Lexicon(self.source))
        scores, rows = self._found(asked, weights, hits, candidates)
        return run_of_rows(asked.qids, self.source.docids, scores, rows)

    def _found(
        self,
        asked: QueryTokens,
        weights: np.ndarray | None,
        hits: int,
        candidates: Mapping[str, Sequence[str]] | None,
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The scores and rows of the best documents of each query."""
        if candidates is None:
            return self.source.search(asked.vectors, asked.offsets, hits, threads=1, weights=weights)
        hits_of = []
        for number, qid in enumerate(asked.qids):
            own = self.source.rows(candidates.get(qid, ()))
            part = slice(asked.offsets[number], asked.offsets[number + 1])
            weighed = None if weights is None else weights[part]
            offsets = np.array([0, part.stop - part.start])
            of_own = self.source.scores(asked.vectors[part], offsets, own, threads=1, weights=weighed)[0]
            hits_of.append(self.source.best(of_own, own, hits))
        return [scores for scores, _ in hits_of], [rows for _, rows in hits_of]
