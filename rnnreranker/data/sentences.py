"""Text to sentences, by rules that fit on a page: English and Chinese."""

from __future__ import annotations

import re

from rnnreranker.encode.words.segmentation import Language, check_language, language_of

_CLOSING = "\"'”’»)\\]」』】）"
_CHINESE_END = re.compile(rf"(?<![（(])[。！？!?；]++[{_CLOSING}]*+(?![》〉])|\n+")
_ENGLISH_END = re.compile(rf"[.!?…]+[{_CLOSING}]*(?=\s+[\"'“‘«(\[]*[A-Z0-9À-ÖØ-Þ])|\n\s*\n")
_LAST_WORD = re.compile(r"[^\s\"'“‘(\[]*$")
_NAMES = """
    mr. mrs. ms. dr. prof. rev. fr. st. mt. ft. jr. sr. gen. col. lt. sgt. capt. cmdr. adm. maj. gov. sen. rep. pres.
    hon. vs. v. cf. e.g. i.e. al. viz. ed. eds. bros. dept. univ.
"""
_NUMBERED = """
    no. nos. vol. vols. p. pp. ch. fig. figs. eq. sec. art. c. ca. approx. jan. feb. mar. apr. jun. jul. aug. sep. sept.
    oct. nov. dec.
"""
_ABBREVIATIONS = frozenset(_NAMES.split())
_BEFORE_NUMBERS = frozenset(_NUMBERED.split())  # abbreviations where a digit follows
_INITIAL = re.compile(r"(?:[A-Za-z]\.)+$")  # J.  U.S.  a.m.


def spans(text: str, language: Language | None = None) -> list[tuple[int, int]]:
    """The sentences of a text: (start, end) character positions, in order, white space at both ends left out.

    English: a sentence ends after `.`, `!`, `?` or `…` and the quotes or brackets that close there, where white space
    and then a capital letter, a digit, or an opening quote or bracket follows; not after an abbreviation of the list
    or after initials (`J.`, `U.S.`); a blank line ends one too. Chinese: after `。`, `；`, `！` or `？` (the last two
    full width or not) and what closes there, but not inside a title (`《…！》`) or right after an opening bracket, and
    at a line break. A straight double quote closes where one is open. What has neither letter nor digit is no sentence:
    it belongs to the one before, at the beginning of a text to the one behind; a text of that alone has none.

    Args:
        text: any text.
        language: "en" or "zh"; None = "zh" where a tenth or more of the characters are Chinese, else "en".

    Raises:
        InputError: another language.

    >>> [text[a:b] for text in ["Dr. No sat. He said: \\"Yes!\\" It was 3.5 m."] for a, b in spans(text)]
    ['Dr. No sat.', 'He said: "Yes!"', 'It was 3.5 m.']
    """
    if language is None:
        language = language_of(text)
    check_language(language)
    end = _CHINESE_END if language == "zh" else _ENGLISH_END
    sentences = []
    start = 0
    for match in end.finditer(text):
        if language == "en" and _abbreviated(text[start : match.end()], text[match.end() :][:8]):
            continue
        cut = match.end()
        if text[start:cut].endswith('"') and text.count('"', start, cut) % 2:
            cut -= 1  # it opens the next sentence
        sentences.append((start, cut))
        start = cut
    sentences.append((start, len(text)))
    trimmed = [_trim(text, first, last) for first, last in sentences]
    return _with_words(text, [(first, last) for first, last in trimmed if first < last])


def _abbreviated(sentence: str, rest: str) -> bool:
    """Whether the full stop at the end of what would be a sentence belongs to its last word."""
    if not sentence.endswith("."):
        return False
    match = _LAST_WORD.search(sentence)
    word = match.group() if match else ""
    if word.lower() in _BEFORE_NUMBERS and rest.lstrip()[:1].isdigit():
        return True
    return word.lower() in _ABBREVIATIONS or bool(_INITIAL.match(word))


def _with_words(text: str, sentences: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The sentences, those without a letter or digit joined to another."""
    kept: list[tuple[int, int]] = []
    waiting: int | None = None  # where a text begins that has had no word yet
    for first, last in sentences:
        if any(map(str.isalnum, text[first:last])):
            kept.append((first if waiting is None else waiting, last))
            waiting = None
        elif kept:
            kept[-1] = kept[-1][0], last
        elif waiting is None:
            waiting = first
    return kept


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))
