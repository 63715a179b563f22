"""Folders and archives in the layout of BEIR: the collections that specs keep so, and SciFact of ir_datasets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.data.names import COLLECTIONS
from rnnreranker.data.reqa import sentence_set
from rnnreranker.encode.words.segmentation import Language
from rnnreranker.regress.rehearsal.datasets import msmarco
from rnnreranker.regress.rehearsal.datasets.archives import table, write_file, write_zip
from rnnreranker.regress.rehearsal.datasets.msmarco import line_of
from rnnreranker.regress.rehearsal.datasets.paragraphs import articles
from rnnreranker.regress.rehearsal.datasets.reqa import HOME, VARIABLE
from rnnreranker.regress.rehearsal.source import TRAINING, Source

HEADER = ("query-id", "corpus-id", "score")
HIGHEST = 2  # grade of NQ-UTD


def graded(source: Source) -> dict[str, bytes]:
    """Documents without titles, a pool of grades from 0 to 2 for each query."""
    queries = source.parts("nq-utd", {"test": source.topics})["test"]
    judged = [
        (f"q{number}", f"d{one}", min(HIGHEST, grade))
        for number, query in enumerate(queries)
        for one, grade in source.graded(query).items()
    ]
    return _files(
        [{"_id": f"d{number}", "title": "", "text": one.text} for number, one in enumerate(source.documents)],
        [{"_id": f"q{number}", "text": query.text, "metadata": {}} for number, query in enumerate(queries)],
        {"test": judged},
    )


def tokenised(source: Source) -> dict[str, bytes]:
    """Paragraphs and questions, each with its one paragraph."""
    return _files(
        [{"_id": f"p{number}", "title": "", "text": line_of(one.text)} for number, one in enumerate(source.documents)],
        [{"_id": f"q{number}", "text": query.text, "metadata": {}} for number, query in enumerate(source.queries)],
        {"test": [(f"q{number}", f"p{query.relevant[0]}", 1) for number, query in enumerate(source.queries)]},
    )


def paragraphs(source: Source) -> dict[str, bytes]:
    """Paragraphs whose questions have marked answers."""
    asked = source.parts("xquad", {"test": TRAINING * source.topics})["test"]
    every = [one for article in articles(source, "p", asked) for one in article.paragraphs]
    queries, judged = [], []
    for one in every:
        for question in one.questions:
            marked = [{"text": one.text[start:end], "answer_start": start} for start, end in question.answers]
            queries.append({"_id": question.id, "text": question.text, "metadata": {"answers": marked}})
            judged.append((question.id, one.id, 1))
    return _files([{"_id": one.id, "title": one.title, "text": one.text} for one in every], queries, {"test": judged})


def sentences_of(key: str, language: Language) -> Callable[[Source], dict[str, bytes]]:
    """The sentences of such paragraphs, those with an answer relevant."""

    def files(source: Source) -> dict[str, bytes]:
        asked = source.parts("xquad", {"test": TRAINING * source.topics})["test"]
        made = sentence_set(one for article in articles(source, key, asked, language) for one in article.paragraphs)
        return _files(
            [
                {
                    "_id": one.docid,
                    "title": one.title,
                    "text": one.text,
                    "metadata": {"passage": one.docid.rpartition("#")[0]},
                }
                for one in made.documents
            ],
            [{"_id": qid, "text": text, "metadata": {}} for qid, text in made.topics.items()],
            {"test": [(qid, docid, 1) for qid, docids in made.qrels.items() for docid in docids]},
        )

    return files


@dataclass(frozen=True)
class Kept:
    """A folder that specs call `collections/NAME`, as a family of miniatures."""

    folder: str
    files: Callable[[Source], dict[str, bytes]]

    @property
    def NAME(self) -> str:
        """As specs name it."""
        return COLLECTIONS + self.folder

    def holds(self, name: str) -> bool:
        """Whether a name is of this family: the name, or a split of it."""
        return name.partition(":")[0] == self.NAME

    def write(self, source: Source, folder: Path) -> dict[str, str]:
        """Write the files under `folder`, and say which environment variable names it."""
        for name, content in self.files(source).items():
            write_file(folder / HOME / self.folder / name, content)
        return {VARIABLE: str((folder / HOME).absolute())}


class SciFact:
    """SciFact of BEIR where ir_datasets keeps its zip, as a family of miniatures."""

    NAME = "beir/scifact"

    def holds(self, name: str) -> bool:
        """Whether a name is of this family."""
        return name == self.NAME or name.startswith(f"{self.NAME}/")

    def write(self, source: Source, folder: Path) -> dict[str, str]:
        """Write the zip under `folder`, and say which environment variables name it."""
        queries: list[dict[str, Any]] = []
        judged: dict[str, list[tuple[object, object, int]]] = {}
        for part, asked in source.parts("scifact", {"train": TRAINING * source.topics, "test": source.topics}).items():
            first = len(queries)
            queries += [
                {"_id": str(first + number), "text": one.text, "metadata": {}} for number, one in enumerate(asked)
            ]
            judged[part] = [(first + number, docid, 1) for number, one in enumerate(asked) for docid in one.relevant]
        corpus = [
            {"_id": str(number), "title": one.title, "text": line_of(one.text), "metadata": {}}
            for number, one in enumerate(source.documents)
        ]
        home = folder / msmarco.HOME
        members = {f"scifact/{name}": content for name, content in _files(corpus, queries, judged).items()}
        write_zip(home / self.NAME / "source.zip", members)
        write_file(home / self.NAME / "irds_version.txt", b"v2")
        return {"IR_DATASETS_HOME": str(home.absolute()), **msmarco.VARIABLES}


FAMILIES = (
    Kept("nq-utd", graded),
    Kept("squad-v1.1-train-5pct-tokenised", tokenised),
    Kept("xquad-en", paragraphs),
    Kept("xquad-en-reqa", sentences_of("p", "en")),
    Kept("cmrc2018-dev-reqa", sentences_of("DEV", "zh")),
    Kept("drcd-dev-reqa", sentences_of("1147", "zh")),
    SciFact(),
)


def _files(
    corpus: Iterable[Mapping[str, Any]],
    queries: Iterable[Mapping[str, Any]],
    judged: Mapping[str, Sequence[tuple[object, object, int]]],
) -> dict[str, bytes]:
    """corpus.jsonl, queries.jsonl and the qrels of each split."""
    files = {"corpus.jsonl": _lines(corpus), "queries.jsonl": _lines(queries)}
    return files | {f"qrels/{split}.tsv": table([HEADER, *rows]) for split, rows in judged.items()}


def _lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
