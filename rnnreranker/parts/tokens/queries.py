"""The tokens of queries, by the encoder that made the tokens of the documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.encode.kept_queries import kept_queries
from rnnreranker.encode.late.encoder import LateEncoder
from rnnreranker.parts.ragged import positions_of
from rnnreranker.parts.tokens.source import TokenSource


@dataclass(frozen=True, eq=False)
class QueryTokens:
    """The vectors of the tokens of queries, one query after the other.

    qids: Q different query ids; vectors: (P, d) float32; offsets: (Q + 1,) int64, query i has
    vectors[offsets[i]:offsets[i + 1]].
    """

    qids: tuple[str, ...]
    vectors: np.ndarray
    offsets: np.ndarray

    def one(self, qid: str) -> np.ndarray:
        """(q, d): the tokens of a query; InputError: no such query."""
        return self.of([qid]).vectors

    def of(self, qids: Sequence[str]) -> QueryTokens:
        """Those of these queries, in this order; InputError: a query that is not there."""
        if lost := [qid for qid in qids if qid not in self._numbers]:
            raise InputError(
                f"{len(lost)} of {len(qids)} queries have no tokens (first: {', '.join(lost[:3])}); give the topics "
                "that the run was made from"
            )
        rows = np.array([self._numbers[qid] for qid in qids], dtype=np.int64)
        positions, offsets = positions_of(self.offsets, rows)
        return QueryTokens(tuple(qids), self.vectors[positions], offsets)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {qid: number for number, qid in enumerate(self.qids)}


def query_tokens(
    source: TokenSource, topics: Mapping[str, str], threads: int | None = None, devices: Devices | None = None
) -> QueryTokens:
    """The tokens of all topics, encoded together, in their order; errors as `check_token_encoder`."""
    check_token_encoder(source)
    name, settings = source.encoder["name"], dict(source.encoder["settings"])
    kept = kept_queries(LateEncoder, name, settings, list(topics.values()), threads, devices)
    return QueryTokens(tuple(topics), kept["vectors"], kept["offsets"])


def check_token_encoder(source: TokenSource) -> None:
    """Look, without loading it, that the encoder is here, and the one that it was.

    Raises:
        InputError: no such encoder, or one that has changed.
        UnavailableError: an encoder that is neither here nor can be downloaded.
    """
    name = source.encoder["name"]
    if LateEncoder.digest_of(name) != source.encoder["digest"]:
        raise InputError(
            f"{source.folder}: was made by {name} as it was then, which is another encoder now; make the index again"
        )
