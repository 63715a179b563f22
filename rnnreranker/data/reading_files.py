"""Reading-comprehension files to paragraphs with questions: SQuAD, CMRC, DRCD, MRQA, Natural Questions, BEIR layout."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_lines
from rnnreranker.base.strict import parse_record, read_json
from rnnreranker.data.records import DOCUMENTS, TOPICS, of_json, read_qrels

ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_TAG = re.compile(r"</?[A-Za-z][^>]*>")
SQUAD = ("id", "context", "id", "question")  # names of a paragraph's id and text, and of a question's
CMRC = ("context_id", "context_text", "query_id", "query_text")
MRQA = ("", "context", "qid", "question")
BEIR = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")


@dataclass(frozen=True)
class Question:
    """A question with its marked answers: (start, end) character positions in the paragraph."""

    id: str
    text: str
    answers: list[tuple[int, int]]


@dataclass(frozen=True)
class Paragraph:
    """A paragraph with its questions; where: for messages."""

    id: str
    title: str
    text: str
    questions: list[Question]
    where: str

    def __post_init__(self) -> None:
        texts = [("title", self.title), ("paragraph", self.text), *(("question", one.text) for one in self.questions)]
        for name, value in texts:
            if not isinstance(value, str):
                raise TypeError(f"{name} is a {type(value).__name__}, not a string")


def paths(files: Path) -> list[Path]:
    """The file itself, or the files of a folder by name; in BEIR layout its three.

    Raises:
        InputError: no files.
    """
    if files.is_file():
        return [files]
    beir = [files / name for name in BEIR]
    if all(path.is_file() for path in beir):
        return beir
    files_read = sorted(path for path in files.glob("*") if path.name.endswith(ENDINGS)) if files.is_dir() else []
    if not files_read:
        raise InputError(f"{files}: no {' or '.join(ENDINGS[:2])} file, plain or .gz; expected the format of SQuAD")
    return files_read


def holds_sentences(folder: Path) -> bool:
    """Whether a folder has a `corpus.jsonl` whose first docid ends in `#sN`."""
    corpus = folder / BEIR[0]
    if not corpus.is_file():
        return False
    _, line = next(read_lines(corpus, "corpus file"), (1, "{}"))
    return bool(re.search(r"#s\d+$", str(parse_record(line, f"{corpus}:1").get("_id", ""))))


def read(files: Path) -> Iterator[Paragraph]:
    """The paragraphs of a file or folder, streamed; those without an id are p0, p1, ….

    Raises:
        InputError: a file of another format (with where).
    """
    files_read = paths(files)
    if [path.name for path in files_read] == [Path(name).name for name in BEIR]:
        yield from _beir(*files_read)
        return
    number = 0
    for path in files_read:
        for paragraph in _file(path):
            yield paragraph if paragraph.id else replace(paragraph, id=f"p{number}")
            number += 1


def _file(path: Path) -> Iterator[Paragraph]:
    if ".jsonl" in path.name:
        for number, line in read_lines(path, "file of paragraphs"):
            yield from _from_line(parse_record(line, f"{path}:{number}"), f"{path}:{number}")
        return
    content = read_json(path, "file of paragraphs")
    articles = content.get("data") if isinstance(content, dict) else content
    if not isinstance(articles, list):
        raise InputError(f'{path}: no list "data" of articles; expected the format of SQuAD')
    for number, article in enumerate(articles):
        where = f"{path}: article {number}"
        with _expecting(where, "the format of SQuAD (paragraphs, context, qas) or of CMRC (context_text, qas)"):
            of_cmrc, title = "context_text" in article, article.get("title", "")
            each = [article] if of_cmrc else article["paragraphs"]
            paragraphs = [_paragraph(one, title, where, CMRC if of_cmrc else SQUAD) for one in each]
        yield from paragraphs


def _paragraph(record: dict[str, Any], title: str, where: str, names: tuple[str, str, str, str]) -> Paragraph:
    """The paragraph of a record with `qas`; names: its keys, and a question's."""
    every, text, questions = record["qas"], record[names[1]], []
    for asked in every:
        if "detected_answers" in asked:  # of MRQA
            spans = [span for answer in asked["detected_answers"] for span in answer["char_spans"]]
            answers = [(start, last + 1) for start, last in spans]
        else:
            answers = _marked(text, asked["answers"])
        questions.append(Question(str(asked[names[2]]), asked[names[3]], answers))
    return Paragraph(str(record.get(names[0], "")), title, text, questions, where)


def _from_line(record: dict[str, Any], where: str) -> Iterator[Paragraph]:
    if "header" in record:  # the first line of an MRQA file
        return
    with _expecting(where, "a line of MRQA (context, qas) or of Natural Questions (document_text, annotations)"):
        of_nq = "document_text" in record
        paragraph = _natural_question(record, where) if of_nq else _paragraph(record, "", where, MRQA)
    if paragraph:
        yield paragraph


def _natural_question(record: dict[str, Any], where: str) -> Paragraph | None:
    """The long answer with the short answers; None without."""
    tokens = record["document_text"].split(" ")
    for annotation in record["annotations"]:
        start, end = annotation["long_answer"]["start_token"], annotation["long_answer"]["end_token"]
        if start < 0 or not annotation["short_answers"]:
            continue
        kept = [index for index in range(start, end) if not _TAG.fullmatch(tokens[index])]
        ends = itertools.accumulate(len(tokens[index]) + 1 for index in kept)
        spans = {index: (last - 1 - len(tokens[index]), last - 1) for index, last in zip(kept, ends, strict=True)}
        shorts = (range(short["start_token"], short["end_token"]) for short in annotation["short_answers"])
        marked = [[spans[at] for at in short if at in spans] for short in shorts]
        answers = [(own[0][0], own[-1][1]) for own in marked if own]
        question = Question(str(record["example_id"]), record["question_text"], answers)
        return Paragraph("", "", " ".join(tokens[index] for index in kept), [question], where)
    return None


def _beir(corpus: Path, queries: Path, qrels: Path) -> Iterator[Paragraph]:
    """Passages as paragraphs; answers are in `metadata`."""
    asked: dict[str, list[dict[str, Any]]] = {}
    belongs: dict[str, str] = {}
    for qid, docid, grade, _ in read_qrels(qrels):
        if grade:
            belongs.setdefault(qid, docid)
    for where, record in of_json(read_lines(queries), str(queries), TOPICS.expected):
        with _expecting(where, "lines with _id, text and metadata"):
            answers = record.get("metadata", {}).get("answers")
            if answers is not None:
                asked.setdefault(belongs.get(str(record["_id"]), ""), []).append(record)
        if answers is None:
            raise InputError(f'{where}: no "answers" in "metadata"; without them no sentence is relevant')
    for where, record in of_json(read_lines(corpus), str(corpus), DOCUMENTS.expected):
        with _expecting(where, "lines with _id, title and text"):
            questions = [
                Question(str(query["_id"]), query["text"], _marked(record["text"], query["metadata"]["answers"]))
                for query in asked.get(str(record["_id"]), ())
            ]
            paragraph = Paragraph(str(record["_id"]), record.get("title") or "", record["text"], questions, where)
        yield paragraph


def _marked(text: str, answers: list[Any]) -> list[tuple[int, int]]:
    """The positions of answers (texts, or objects with a `text`), each nearest to its `answer_start`."""
    spans = []
    for answer in answers:
        answer = {"text": answer} if isinstance(answer, str) else answer
        words, start = answer["text"], answer.get("answer_start", 0)
        starts = [match.start() for match in re.finditer(re.escape(words), text)] if words else []
        if starts:
            nearest = min(starts, key=lambda nearest: abs(nearest - start))
            spans.append((nearest, nearest + len(words)))
    return sorted(set(spans))


@contextlib.contextmanager
def _expecting(where: str, expected: str) -> Iterator[None]:
    """Turns a missing key or a value of another type into an InputError."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError) as error:
        raise InputError(f"{where}: {type(error).__name__} {error}; expected {expected}") from None
