"""The tokens of queries, by the encoder that made the tokens of the documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnreranker.encode.kept_queries import encoded_token_queries
from rnnreranker.encode.late import late_digest_of
from rnnreranker.errors import InputError
from rnnreranker.tokens.token_source import TokenSource


def token_queries(source: TokenSource, texts: Sequence[str], threads: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The vectors (P, d) float32 of the tokens of n queries, and (n + 1,) int64 where those of each begin.

    Raises:
        InputError, UnavailableError: as `check_token_encoder`.
    """
    check_token_encoder(source)
    return encoded_token_queries(source.encoder["name"], dict(source.encoder["settings"]), texts, threads)


def check_token_encoder(source: TokenSource) -> None:
    """Look, without loading it, that the encoder is here, and the one that it was.

    Raises:
        InputError: no such encoder, or one that has changed.
        UnavailableError: an encoder that is neither here nor can be downloaded.
    """
    name = source.encoder["name"]
    if late_digest_of(name) != source.encoder["digest"]:
        raise InputError(
            f"{source.folder}: was made by {name} as it was then, which is another encoder now; make the index again"
        )
