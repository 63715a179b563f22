"""SQuAD, Natural Questions, CMRC 2018 and DRCD, each file in its own format, where ReQA names look for them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.data.reading_files import Paragraph, Question
from rnnreranker.encode.words.segmentation import Language
from rnnreranker.regress.rehearsal.datasets.archives import write_file
from rnnreranker.regress.rehearsal.datasets.paragraphs import Article, articles
from rnnreranker.regress.rehearsal.source import Source, SourceQuery

VARIABLE, HOME = "RNNRERANKER_COLLECTIONS", "collections"


def squad(made: Sequence[Article]) -> bytes:
    """The format of SQuAD 1.1."""
    return _json({"data": [_squad_article(article) for article in made], "version": "1.1"})


def drcd(made: Sequence[Article]) -> bytes:
    """The format of DRCD: SQuAD's, with ids of articles, paragraphs and answers."""
    data = [_squad_article(article) for article in made]
    for number, (article, record) in enumerate(zip(made, data, strict=True)):
        record["id"] = str(number)
        for paragraph, of in zip(article.paragraphs, record["paragraphs"], strict=True):
            of["id"] = paragraph.id
            for asked in of["qas"]:
                asked["answers"] = [{"id": "1", **answer} for answer in asked["answers"]]
    return _json({"version": "1.3", "data": data})


def cmrc(made: Sequence[Article]) -> bytes:
    """The format of CMRC 2018: a list of contexts whose answers have no positions."""
    return _json(
        [
            {
                "context_id": paragraph.id,
                "context_text": paragraph.text,
                "qas": [
                    {
                        "query_text": one.text,
                        "query_id": one.id,
                        "answers": [answer for answer, _ in _answers(paragraph, one)],
                    }
                    for one in paragraph.questions
                ],
                "title": paragraph.title,
            }
            for article in made
            for paragraph in article.paragraphs
        ]
    )


def natural_questions(made: Sequence[Article]) -> bytes:
    """The simplified format of Natural Questions: a line for each question, answers as numbers of tokens."""
    lines = []
    for article in made:
        for paragraph in article.paragraphs:
            lines += [_natural_question(paragraph, one) for one in paragraph.questions]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


Writer = Callable[[Sequence[Article]], bytes]


@dataclass(frozen=True)
class ReadingFiles:
    """The files of one ReQA name, as a family of miniatures.

    Attributes:
        NAME: the name, also of the folder.
        files: name of a file → how it is written; the first has most of the questions, each of the others a fifth.
        language: of its texts.
    """

    NAME: str
    files: Mapping[str, Writer]
    language: Language = "en"

    def holds(self, name: str) -> bool:
        """Whether a name is of this family: the name, or a part of its questions."""
        return name.partition(":")[0] == self.NAME

    def write(self, source: Source, folder: Path) -> dict[str, str]:
        """Write the files under `folder`, and say which environment variable names it."""
        queries = source.shuffled(source.queries, self.NAME)
        share = len(queries) // 5
        asked = [queries[share * (len(self.files) - 1) :]]
        asked += [queries[share * one : share * (one + 1)] for one in range(len(self.files) - 1)]
        for (name, writer), own in zip(self.files.items(), asked, strict=True):
            made = self._asked_of(source, name, own, first=own is asked[0])
            write_file(folder / HOME / self.NAME / name, writer(made))
        return {VARIABLE: str((folder / HOME).absolute())}

    def _asked_of(self, source: Source, file: str, questions: list[SourceQuery], first: bool) -> list[Article]:
        """The articles of a file: the first has all paragraphs that are left, the others those that are asked of."""
        made = articles(source, re.sub(r"\W.*", "", file).upper(), questions, self.language)
        if first:
            return made
        kept = [Article(one.title, [paragraph for paragraph in one.paragraphs if paragraph.questions]) for one in made]
        return [one for one in kept if one.paragraphs]


FAMILIES = (
    ReadingFiles("reqa-squad", {"train-v1.1.json": squad, "dev-v1.1.json": squad}),
    ReadingFiles("reqa-nq", {"simplified-nq-train.jsonl.gz": natural_questions}),
    ReadingFiles("reqa-cmrc", {"cmrc2018_train.json": cmrc, "cmrc2018_dev.json": cmrc}, "zh"),
    ReadingFiles("reqa-drcd", {"DRCD_training.json": drcd, "DRCD_dev.json": drcd, "DRCD_test.json": drcd}, "zh"),
)


def _squad_article(article: Article) -> dict[str, Any]:
    paragraphs = [
        {
            "context": paragraph.text,
            "qas": [
                {
                    "answers": [{"answer_start": start, "text": text} for text, start in _answers(paragraph, one)],
                    "question": one.text,
                    "id": one.id,
                }
                for one in paragraph.questions
            ],
        }
        for paragraph in article.paragraphs
    ]
    return {"title": article.title, "paragraphs": paragraphs}


def _natural_question(paragraph: Paragraph, asked: Question) -> dict[str, Any]:
    before = [*paragraph.title.split(), "-", "Wikipedia", "<H1>", *paragraph.title.split(), "</H1>", "<P>"]
    words = list(re.finditer(r"\S+", paragraph.text))
    (start, end), first = asked.answers[0], len(before)
    spanned = [number for number, word in enumerate(words) if word.start() < end and word.end() > start]
    short = {"start_token": first + spanned[0], "end_token": first + spanned[-1] + 1}
    long = {"start_token": first - 1, "end_token": first + len(words) + 1}
    return {
        "document_text": " ".join([*before, *(word.group() for word in words), "</P>"]),
        "long_answer_candidates": [{**long, "top_level": True}],
        "question_text": asked.text,
        "annotations": [
            {
                "yes_no_answer": "NONE",
                "long_answer": {**long, "candidate_index": 0},
                "short_answers": [short],
                "annotation_id": _number(asked.id),
            }
        ],
        "document_url": "https://example.org/" + paragraph.id,
        "example_id": _number(asked.id),
    }


def _number(name: str) -> int:
    return int(re.sub(r"\D", "", name.replace("_", "0")))


def _answers(paragraph: Paragraph, asked: Question) -> list[tuple[str, int]]:
    return [(paragraph.text[start:end], start) for start, end in asked.answers]


def _json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False) + "\n").encode()
