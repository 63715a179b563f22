"""Words and the tokens of a model that they are cut into: weights of the one spread to the other and gathered again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rnnreranker.encode.words.analysis import Analyser
from rnnreranker.encode.words.segmentation import Spans, bmes_tags

TAGS = "BMES"
NO_TAG = len(TAGS)  # of tokens that the model adds


@dataclass(frozen=True)
class Pieces:
    """A text as a model reads it, beside its words.

    Attributes:
        tokens: (T,) token numbers, those that the model adds included; tags: (T,) the indices in "BMES" of their first
            characters, `NO_TAG` for those that the model adds.
        words: as they are counted; spans: where they stand in the text, (start, end) characters.
        pairs: (token, word) indices, ascending: which tokens a word is cut into. A token may be of several words, as
            "U.S" in one piece; a word may have none, where the text is cut at the model's length.
    """

    tokens: list[int]
    tags: list[int]
    words: list[str]
    spans: Spans
    pairs: list[tuple[int, int]]

    def spread(self, weights: Sequence[float]) -> dict[int, float]:
        """Token -> weight, for the tokens of words: each word's weight in equal parts to its tokens.

        The paper says so of the characters of Chinese words; here it is so of the pieces of any.

        >>> Pieces([2, 7, 8, 3], [4, 0, 1, 4], ["rain"], [(0, 4)], [(1, 0), (2, 0)]).spread([0.5])
        {1: 0.25, 2: 0.25}
        """
        parts: dict[int, float] = {}
        counts = self._tokens_of_words()
        for token, word in self.pairs:
            parts[token] = parts.get(token, 0.0) + weights[word] / counts[word]
        return parts

    def gather(self, weights: Sequence[float]) -> list[float | None]:
        """The weight of each word: the sum of its tokens', each in equal parts to its words; None without a token.

        >>> Pieces([2, 7, 8, 3], [4, 0, 1, 4], ["rain"], [(0, 4)], [(1, 0), (2, 0)]).gather([9, 0.25, 0.5, 9])
        [0.75]
        """
        shared: dict[int, int] = {}
        for token, _ in self.pairs:
            shared[token] = shared.get(token, 0) + 1
        by_word: list[float | None] = [None] * len(self.words)
        for token, word in self.pairs:
            by_word[word] = (by_word[word] or 0.0) + weights[token] / shared[token]
        return by_word

    def _tokens_of_words(self) -> list[int]:
        counts = [0] * len(self.words)
        for _, word in self.pairs:
            counts[word] += 1
        return counts


class PieceReader:
    """Texts to pieces.

    Args:
        tokenizer: of transformers, with offsets ("fast").
        analyser: what gives texts their words.
        max_length: tokens at which texts are cut.
    """

    def __init__(self, tokenizer: Any, analyser: Analyser, max_length: int) -> None:
        self.tokenizer, self.analyser, self.max_length = tokenizer, analyser, max_length

    def read(self, text: str) -> Pieces:
        """The pieces of a text, which may be empty."""
        encoding = self.tokenizer(text, truncation=True, max_length=self.max_length, return_offsets_mapping=True)
        spans, words = self.analyser.spans(text), self.analyser.words([text])[0]
        tags = bmes_tags(text, spans)
        offsets = [tuple(offset) for offset in encoding["offset_mapping"]]
        return Pieces(
            list(encoding["input_ids"]),
            [TAGS.index(tags[start]) if end > start else NO_TAG for start, end in offsets],
            words,
            spans,
            aligned(offsets, spans),
        )


def aligned(tokens: Sequence[tuple[int, ...]], words: Spans) -> list[tuple[int, int]]:
    """(token, word) for every token that has a character of a word; both are (start, end) positions, words ascending.

    >>> aligned([(0, 0), (0, 3), (3, 6), (6, 7), (0, 0)], [(0, 2), (2, 6)])
    [(1, 0), (1, 1), (2, 1)]
    """
    owner = {position: word for word, (start, end) in enumerate(words) for position in range(start, end)}
    pairs = {
        (token, owner[position])
        for token, (start, end) in enumerate(tokens)
        for position in range(start, end)
        if position in owner
    }
    return sorted(pairs)
