"""The words of a text: English by letters and digits, Chinese by jieba; BMES tags of characters."""

from __future__ import annotations

import functools
import re
import unicodedata
import warnings
from collections.abc import Sequence
from typing import Any, Literal

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.process.phases import phase


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


Language = Literal["en", "zh"]
LANGUAGES = ("en", "zh")
Spans = list[tuple[int, int]]

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f])*")
_SMALL = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128))  # of an ASCII character


def language_of(text: str) -> Language:
    """ "zh" if at least a tenth of the characters are Chinese, else "en"."""
    return "zh" if text and len(_HAN.findall(text)) * 10 >= len(text) else "en"


def check_language(language: str) -> None:
    if language not in LANGUAGES:
        raise InputError(f"language {language!r}: expected one of {', '.join(LANGUAGES)}")


def word_spans(text: str, language: Language) -> Spans:
    """(start, end) characters of the words of a text, in order; every word has a letter or a digit.

    English: runs of letters and digits. Chinese: jieba's words, which keep runs of Latin letters and digits whole.

    Raises:
        InputError, MissingDependencyError: another language than "en" and "zh"; jieba is not installed.

    >>> text = "The U.S. won 3.5 m"
    >>> [text[start:end] for start, end in word_spans(text, "en")]
    ['The', 'U', 'S', 'won', '3', '5', 'm']
    """
    check_language(language)
    if language == "en":
        return [match.span() for match in _WORD.finditer(text)]

    cut = ((start, end) for _, start, end in load_jieba().tokenize(_narrow(text)))  # punctuation and spaces too
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
    """A letter for every character (paper 004, section 3.2.1).

    B, M or E at the begin, in the middle or at the end of a word; S for a word of one character, or outside of words.

    Args:
        spans: of the words, ascending, as in `word_spans`; InputError: others.

    >>> bmes_tags("她来到清华大学。", [(0, 1), (1, 3), (3, 7)])
    'SBEBMMES'
    """
    tags, behind = ["S"] * len(text), 0
    for start, end in spans:
        if not behind <= start < end <= len(text):
            raise InputError(f"word at {start} to {end} of a text of {len(text)} characters: expected ascending spans")
        if end - start > 1:
            tags[start:end] = ["B", *"M" * (end - start - 2), "E"]
        behind = end
    return "".join(tags)


def _narrow(text: str) -> str:
    """The text with full-width letters, digits and signs as normal ones; its length does not change."""
    if text.isascii():
        return text
    plain = (unicodedata.normalize("NFKC", character) for character in text)
    return "".join(one if len(one) == 1 else was for one, was in zip(plain, text, strict=True))
