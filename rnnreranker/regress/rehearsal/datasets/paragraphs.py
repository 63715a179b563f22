"""Paragraphs with questions whose answers are marked in them, English or with each word as Chinese characters."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rnnreranker.data.reading_files import Paragraph, Question
from rnnreranker.encode.words.segmentation import Language
from rnnreranker.regress.rehearsal.datasets.msmarco import line_of
from rnnreranker.regress.rehearsal.source import Source, SourceQuery

ANSWER = 3  # words of an answer, or characters
TOKENS = {"en": re.compile(r"\S+"), "zh": re.compile(r"\w")}
FIRST, COMMON = 0x4E00, 3000  # Chinese characters that words become
SHORT = 3  # letters of a word that is one character; longer ones are two
SIGNS = {".": "。", ",": "，", ":": "：", ";": "；", "!": "！", "?": "？", "(": "（", ")": "）"}


@dataclass(frozen=True)
class Article:
    """A title with the paragraphs under it."""

    title: str
    paragraphs: list[Paragraph] = field(default_factory=list)


def articles(
    source: Source, key: str, questions: Sequence[SourceQuery], language: Language = "en", size: int = 5
) -> list[Article]:
    """All documents of a source as paragraphs, in articles of `size`; a question is asked of its first relevant one.

    Args:
        source: whose documents they are.
        key: begins the ids of paragraphs and questions, and says where answers stand.
        questions: some or all of the source's queries.
        language: "zh" writes each word as Chinese characters, the same word always as the same.
        size: paragraphs of an article.
    """
    asked: dict[int, list[SourceQuery]] = {}
    for query in questions:
        asked.setdefault(query.relevant[0], []).append(query)
    made: list[Article] = []
    for number, document in enumerate(source.documents):
        if number % size == 0:
            made.append(Article(written(document.title, language)))
        text = written(_sentences(document.text), language)
        identity = f"{key}_{number}"
        answered = [
            Question(
                f"{identity}_{order}",
                written(query.text, language) + "?？"[language == "zh"],
                [_answer(source, text, query, language)],
            )
            for order, query in enumerate(asked.get(number, ()))
        ]
        made[-1].paragraphs.append(Paragraph(identity, made[-1].title, text, answered, key))
    return made


def written(text: str, language: Language) -> str:
    """A text as it is, or with every word of Latin letters as one or two Chinese characters.

    >>> written("Read the file, then read it.", "zh") == written("read the File , then read it .", "zh")
    True
    """
    if language == "en":
        return text
    words = re.findall(r"[^\W\d_]+|\d+|[^\w\s]", text)
    return "".join(SIGNS.get(word, _characters(word) if word[0].isalpha() else word) for word in words)


def _characters(word: str) -> str:
    digest = hashlib.sha256(word.casefold().encode()).digest()
    pairs = [int.from_bytes(digest[2 * one : 2 * one + 2]) for one in range(1 if len(word) <= SHORT else 2)]
    return "".join(chr(FIRST + one % COMMON) for one in pairs)


def _sentences(text: str) -> str:
    """The lines of a document but the second, which repeats the name, each with a full stop."""
    lines = [line_of(line) for number, line in enumerate(text.split("\n")) if number != 1]
    return " ".join(line if line.endswith((".", "!", "?", ",", ":", ";")) else f"{line}." for line in lines if line)


def _answer(source: Source, text: str, query: SourceQuery, language: Language) -> tuple[int, int]:
    tokens = list(TOKENS[language].finditer(text))
    first = source.shuffled(range(max(1, len(tokens) - ANSWER)), "answer", query.text)[0]
    of = tokens[first : first + ANSWER]
    return of[0].start(), of[-1].end()
