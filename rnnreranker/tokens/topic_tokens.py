"""The tokens of topics by their texts, encoded together when the first is asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.tokens.token_queries import check_token_encoder, token_queries

if TYPE_CHECKING:
    from rnnreranker.method import Inputs


class TopicTokens:
    """The tokens of the topics of some inputs.

    Args:
        inputs: with topics and tokens; threads: None = one per core.

    Raises:
        InputError, UnavailableError: as `check_token_encoder`.
    """

    def __init__(self, inputs: Inputs, threads: int | None) -> None:
        self._inputs = inputs
        self._threads = threads
        check_token_encoder(inputs.tokens)

    def of(self, text: str) -> np.ndarray:
        """(q, d) float32: the tokens of a topic."""
        vectors, places = self._encoded
        first, last = places[self._places[text] :][:2]
        found: np.ndarray = vectors[first:last]
        return found

    @cached_property
    def _places(self) -> dict[str, int]:
        return {text: place for place, text in enumerate(self._inputs.topics.values())}

    @cached_property
    def _encoded(self) -> tuple[np.ndarray, np.ndarray]:
        return token_queries(self._inputs.tokens, list(self._inputs.topics.values()), self._threads)
