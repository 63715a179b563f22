"""The words of a text, English by letters and digits, Chinese by jieba; and the tokens of a model for these words."""

from __future__ import annotations

import functools
import importlib.metadata
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from rnnreranker.base.command import phase
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import fingerprint
from rnnreranker.base.settings import Params, setting

Language = Literal["en", "zh"]
Spans = list[tuple[int, int]]
TAGS = "BMES"
NO_TAG = len(TAGS)  # of tokens that the model adds

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f])*")
_SMALL = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128))  # of an ASCII character


@functools.cache
@phase("reading jieba's dictionary")
def load_jieba() -> Any:
    """jieba's segmenter with the dictionary of its package; changes to `jieba.dt` do not affect it.

    Raises:
        MissingDependencyError: jieba is not installed.
    """
    with warnings.catch_warnings():  # of its regular expressions, and of pkg_resources
        warnings.simplefilter("ignore")
        jieba = require("jieba", "the words of Chinese texts", "'rnnreranker[zh]'")
        segmenter = jieba.Tokenizer()
        segmenter.FREQ, segmenter.total = segmenter.gen_pfdict(segmenter.get_dict_file())
        segmenter.initialized = True  # it would read a marshalled copy from the folder of temporary files
    return segmenter


def language_of(text: str) -> Language:
    """ "zh" if at least a tenth of the characters are Chinese, else "en"."""
    return "zh" if text and len(_HAN.findall(text)) * 10 >= len(text) else "en"


def word_spans(text: str, language: Language) -> Spans:
    """(start, end) characters of the words of a text, in order; every word has a letter or a digit.

    English: runs of letters and digits. Chinese: jieba's words, which keep runs of Latin letters and digits whole.

    Raises:
        InputError, MissingDependencyError: another language than "en" and "zh"; jieba is not installed.

    >>> text = "The U.S. won 3.5 m"
    >>> [text[start:end] for start, end in word_spans(text, "en")]
    ['The', 'U', 'S', 'won', '3', '5', 'm']
    """
    if language not in get_args(Language):
        raise InputError(f"language {language!r}: expected one of {', '.join(get_args(Language))}")
    if language == "en":
        return [match.span() for match in _WORD.finditer(text)]
    # full-width letters, digits and signs as normal ones, unless the length changes
    plain = (unicodedata.normalize("NFKC", character) for character in text)
    narrow = "".join(one if len(one) == 1 else was for one, was in zip(plain, text, strict=True))
    cut = ((start, end) for _, start, end in load_jieba().tokenize(narrow))  # punctuation and spaces too
    return [(start, end) for start, end in cut if any(map(str.isalnum, text[start:end]))]


def words(text: str, language: Language) -> list[str]:
    r"""The words of a text in order, in lower case and NFKC; arguments and errors as `word_spans`.

    >>> words("The Cafe\u0301, the \uff23\uff21\uff26\uff25", "en")
    ['the', 'café', 'the', 'cafe']
    """
    if language == "en" and text.isascii():
        return text.translate(_SMALL).split()
    return [unicodedata.normalize("NFKC", text[start:end]).lower() for start, end in word_spans(text, language)]


def bmes_tags(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """A letter for every character (paper 004, section 3.2.1); spans: of the words, as in `word_spans`.

    B, M or E at the begin, in the middle or at the end of a word; S for a word of one character, or outside of words.

    >>> bmes_tags("她来到清华大学。", [(0, 1), (1, 3), (3, 7)])
    'SBEBMMES'
    """
    tags = ["S"] * len(text)
    for start, end in spans:
        if end - start > 1:
            tags[start:end] = ["B", *"M" * (end - start - 2), "E"]
    return "".join(tags)


@dataclass(frozen=True)
class TermParams(Params):
    """Settings of counted words, of documents and queries; InputError: values out of range, a stemmer of another
    language.
    """

    language: Language = setting("en", "words of documents: en, runs of letters and digits; zh, Chinese words by jieba")
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

    graph = None  # it has no model

    def __init__(self, params: TermParams) -> None:
        self.params, self._stemmer = params, None
        package = ""
        if params.language == "zh":
            load_jieba()
            package = "jieba"
        if params.stemmer != "none":
            stemmers: Any = require("Stemmer", "stems of words", "'rnnreranker[terms]'")
            self._stemmer = stemmers.Stemmer(params.stemmer)
            package = "PyStemmer"
        self.package = f"{package} {importlib.metadata.version(package)}" if package else ""
        self.fingerprint = fingerprint("terms", params.to_dict(), self.package)

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        words_of_texts = [words(text, self.params.language) for text in texts]
        return [self._stemmer.stemWords(own) for own in words_of_texts] if self._stemmer is not None else words_of_texts


@dataclass(frozen=True)
class Pieces:
    """A text as a model reads it, and its words.

    Attributes:
        tokens: (T,) token numbers, also of added tokens; tags: (T,) indices in "BMES" of their first characters,
            `NO_TAG` for added tokens.
        words: as they are counted.
        pairs: (token, word) indices, ascending: a token may belong to several words; a word beyond the length has none.
    """

    tokens: list[int]
    tags: list[int]
    words: list[str]
    pairs: list[tuple[int, int]]

    def spread(self, weights: Sequence[float]) -> dict[int, float]:
        """Token → weight: each word's weight in equal parts to its tokens, as the paper does for Chinese characters.

        >>> Pieces([2, 7, 8, 3], [4, 0, 1, 4], ["rain"], [(1, 0), (2, 0)]).spread([0.5])
        {1: 0.25, 2: 0.25}
        """
        return _shared(weights, [(word, token) for token, word in self.pairs])

    def gather(self, weights: Sequence[float]) -> list[float | None]:
        """The weight of each word: the sum of its tokens' weights, each shared by its words, or None.

        >>> Pieces([2, 7, 8, 3], [4, 0, 1, 4], ["rain"], [(1, 0), (2, 0)]).gather([9, 0.25, 0.5, 9])
        [0.75]
        """
        by_word = _shared(weights, self.pairs)
        return [by_word.get(word) for word in range(len(self.words))]


def _shared(weights: Sequence[float], pairs: Sequence[tuple[int, int]]) -> dict[int, float]:
    """The sum of weights for each second number of pairs; each first number gives its weight in equal parts."""
    counts, sums = Counter(giver for giver, _ in pairs), dict[int, float]()
    for giver, taker in pairs:
        sums[taker] = sums.get(taker, 0.0) + weights[giver] / counts[giver]
    return sums


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
        spans = word_spans(text, self.analyser.params.language)
        kinds, offsets = bmes_tags(text, spans), encoding["offset_mapping"]
        tags = [TAGS.index(kinds[start]) if end > start else NO_TAG for start, end in offsets]
        own_words = self.analyser.words([text])[0]
        return Pieces(list(encoding["input_ids"]), tags, own_words, aligned(offsets, spans))


def aligned(tokens: Sequence[tuple[int, ...]], words: Spans) -> list[tuple[int, int]]:
    """(token, word) for every token with a character of a word; both given as (start, end), words ascending.

    >>> aligned([(0, 0), (0, 3), (3, 6), (6, 7), (0, 0)], [(0, 2), (2, 6)])
    [(1, 0), (1, 1), (2, 1)]
    """
    owner = {position: word for word, (start, end) in enumerate(words) for position in range(start, end)}
    positions = ((token, position) for token, span in enumerate(tokens) for position in range(*span))
    return sorted({(token, owner[position]) for token, position in positions if position in owner})
