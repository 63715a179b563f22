"""Sentences of English and Chinese texts, by rules."""

from __future__ import annotations

import re

from rnnreranker.encode.words.analysis import language_of

_CLOSING = "\"'”’»)\\]」』】）"
_CHINESE_END = re.compile(rf"(?<![（(])[。！？!?；]++[{_CLOSING}]*+(?![》〉])|\n+")
_ENGLISH_END = re.compile(rf"[.!?…]+[{_CLOSING}]*(?=\s+[\"'“‘«(\[]*[A-Z0-9À-ÖØ-Þ])|\n\s*\n")
_NAMES = """
    mr. mrs. ms. dr. prof. rev. fr. st. mt. ft. jr. sr. gen. col. lt. sgt. capt. cmdr. adm. maj. gov. sen. rep. pres.
    hon. vs. v. cf. e.g. i.e. al. viz. ed. eds. bros. dept. univ.
"""
_NUMBERED = """
    no. nos. vol. vols. p. pp. ch. fig. figs. eq. sec. art. c. ca. approx. jan. feb. mar. apr. jun. jul. aug. sep. sept.
    oct. nov. dec.
"""
_ABBREVIATIONS = frozenset(_NAMES.split())
_BEFORE_NUMBERS = _ABBREVIATIONS | frozenset(_NUMBERED.split())  # where a digit follows
_INITIAL = re.compile(r"(?:[A-Za-z]\.)+$")  # J.  U.S.  a.m.


Spans = list[tuple[int, int]]  # (start, end) character positions


def sentence_spans(text: str) -> Spans:
    """The sentences of a text: (start, end) character positions, without white space at both ends.

    A text is Chinese if a tenth of its characters are, else English. An English sentence ends at a blank line, and
    after `.`, `!`, `?` or `…` before white space and a capital, digit, opening quote or bracket, except after
    abbreviations. A Chinese one ends at a line break, and after `。`, `；`, `！` or `？` outside a title.

    >>> [text[a:b] for text in ["Dr. No sat. He said: \\"Yes!\\" It was 3.5 m."] for a, b in sentence_spans(text)]
    ['Dr. No sat.', 'He said: "Yes!"', 'It was 3.5 m.']
    """
    english = language_of(text) == "en"
    ends, start = [], 0
    for match in (_ENGLISH_END if english else _CHINESE_END).finditer(text):
        end = match.end()
        if english and _abbreviated(text[start:end], text[end : end + 8]):
            continue
        if text[end - 1] == '"' and text.count('"', start, end) % 2:
            end -= 1  # the quote opens the next sentence
        ends.append(end)
        start = end
    kept: Spans = []
    waiting: int | None = None  # the start of pieces before the first that has a word
    for first, last in zip([0, *ends], [*ends, len(text)], strict=True):
        piece = text[first:last]
        first, last = first + len(piece) - len(piece.lstrip()), first + len(piece.rstrip())
        if any(map(str.isalnum, piece)):
            kept.append((first if waiting is None else waiting, last))
            waiting = None
        elif piece.strip() and kept:
            kept[-1] = kept[-1][0], last
        elif piece.strip() and waiting is None:
            waiting = first
    return kept


def _abbreviated(sentence: str, rest: str) -> bool:
    word = re.split(r"[\s\"'“‘(\[]", sentence)[-1]
    known = _BEFORE_NUMBERS if rest.lstrip()[:1].isdigit() else _ABBREVIATIONS
    return word.endswith(".") and (word.lower() in known or bool(_INITIAL.match(word)))
