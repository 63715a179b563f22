"""Texts to counted words, and to the tokens of a model for these words."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import fingerprint
from rnnreranker.base.settings import Params, setting
from rnnreranker.encode.words.segmentation import Spans, bmes_tags, load_jieba, word_spans, words


@dataclass(frozen=True)
class TermParams(Params):
    """Settings of counted words, of documents and queries; InputError: values out of range, a stemmer of another
    language.
    """

    language: Literal["en", "zh"] = setting(
        "en", "words of documents: en, runs of letters and digits; zh, Chinese words by jieba"
    )
    stemmer: Literal["none", "porter"] = setting("none", "stemmer of English words: none or Porter's")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stemmer != "none" and self.language != "en":
            raise InputError(f"stemmer {self.stemmer}: of English words, not of language {self.language}")


class Analyser:
    """Splits texts into words.

    Attributes:
        params: language and stemmer; package: behind the words, as "jieba 0.42.1", or ""; fingerprint: of both.

    Raises:
        MissingDependencyError: jieba or PyStemmer is needed and not installed.
    """

    def __init__(self, params: TermParams) -> None:
        self.params = params
        self._stemmer: Any = None
        package = ""
        if params.language == "zh":
            load_jieba()
            package = "jieba"
        if params.stemmer != "none":
            stemmers = require("Stemmer", "stems of words", "'rnnreranker[terms]'")
            self._stemmer = stemmers.Stemmer(params.stemmer)
            package = "PyStemmer"
        self.package = f"{package} {importlib.metadata.version(package)}" if package else ""
        self.fingerprint = fingerprint("terms", params.to_dict(), self.package)

    def spans(self, text: str) -> Spans:
        return word_spans(text, self.params.language)

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        words_of_texts = [words(text, self.params.language) for text in texts]
        return [self._stemmer.stemWords(own) for own in words_of_texts] if self._stemmer is not None else words_of_texts


TAGS = "BMES"
NO_TAG = len(TAGS)  # of tokens that the model adds


@dataclass(frozen=True)
class Pieces:
    """A text as a model reads it, and its words.

    Attributes:
        tokens: (T,) token numbers, also of added tokens; tags: (T,) indices in "BMES" of their first characters,
            `NO_TAG` for added tokens.
        words: as they are counted; spans: their (start, end) characters in the text.
        pairs: (token, word) indices, ascending: a token may belong to several words; a word beyond the length has none.
    """

    tokens: list[int]
    tags: list[int]
    words: list[str]
    spans: Spans
    pairs: list[tuple[int, int]]

    def spread(self, weights: Sequence[float]) -> dict[int, float]:
        """Token → weight: each word's weight in equal parts to its tokens, as the paper does for Chinese characters.

        >>> Pieces([2, 7, 8, 3], [4, 0, 1, 4], ["rain"], [(0, 4)], [(1, 0), (2, 0)]).spread([0.5])
        {1: 0.25, 2: 0.25}
        """
        counts = Counter(word for _, word in self.pairs)
        parts: dict[int, float] = {}
        for token, word in self.pairs:
            parts[token] = parts.get(token, 0.0) + weights[word] / counts[word]
        return parts

    def gather(self, weights: Sequence[float]) -> list[float | None]:
        """The weight of each word: the sum of its tokens' weights, each shared by its words, or None.

        >>> Pieces([2, 7, 8, 3], [4, 0, 1, 4], ["rain"], [(0, 4)], [(1, 0), (2, 0)]).gather([9, 0.25, 0.5, 9])
        [0.75]
        """
        shared = Counter(token for token, _ in self.pairs)
        by_word: dict[int, float] = {}
        for token, word in self.pairs:
            by_word[word] = by_word.get(word, 0.0) + weights[token] / shared[token]
        return [by_word.get(word) for word in range(len(self.words))]


class PieceReader:
    """Texts to pieces.

    Args:
        tokenizer: of transformers, with offsets ("fast"); analyser: gives the words.
        max_length: tokens at which texts are cut.
    """

    def __init__(self, tokenizer: Any, analyser: Analyser, max_length: int) -> None:
        self.tokenizer, self.analyser, self.max_length = tokenizer, analyser, max_length

    def read(self, text: str) -> Pieces:
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
    """(token, word) for every token with a character of a word; both given as (start, end), words ascending.

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
