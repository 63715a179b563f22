"""Reading-comprehension files to paragraphs with questions: SQuAD, CMRC, DRCD, MRQA, Natural Questions, BEIR layout."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_lines
from rnnreranker.base.files.json_files import parse_record, read_json
from rnnreranker.data.records import DOCUMENTS, TOPICS, read_qrels, read_records

ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_TAG = re.compile(r"</?[A-Za-z][^>]*>")
BEIR = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")


@dataclass(frozen=True)
class Question:
    """A question with its marked answers: (start, end) character positions in the paragraph, maybe none."""

    id: str
    text: str
    answers: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        _check_strings(question=self.text)


@dataclass(frozen=True)
class Paragraph:
    """A paragraph with its questions, and where it was read (for messages)."""

    id: str
    title: str
    text: str
    questions: list[Question]
    where: str

    def __post_init__(self) -> None:
        _check_strings(title=self.title, paragraph=self.text)


def paths(files: Path) -> list[Path]:
    """The file itself, or the files of a folder that are read, in the order of their names; of BEIR layout its three.

    Raises:
        InputError: nothing there.
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
    """Whether a folder is in BEIR layout and its documents are sentences already (the first docid ends in `#sN`)."""
    corpus = folder / BEIR[0]
    if not corpus.is_file():
        return False
    _, line = next(read_lines(corpus, "corpus file"), (1, "{}"))
    return bool(re.search(r"#s\d+$", str(parse_record(line, f"{corpus}:1").get("_id", ""))))


def read(files: Path) -> Iterator[Paragraph]:
    """The paragraphs of a file or folder, streamed in its order; those without an id are p0, p1, ….

    Raises:
        InputError: a file of another format (with where, and what was expected).
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
            paragraphs = [_cmrc(article, where)] if "context_text" in article else list(_squad(article, where))
        yield from paragraphs


def _squad(article: dict[str, Any], where: str) -> Iterator[Paragraph]:
    for paragraph in article["paragraphs"]:
        text = paragraph["context"]
        questions = [
            Question(str(asked["id"]), asked["question"], _marked(text, asked["answers"])) for asked in paragraph["qas"]
        ]
        yield Paragraph(str(paragraph.get("id", "")), article.get("title", ""), text, questions, where)


def _cmrc(article: dict[str, Any], where: str) -> Paragraph:
    text = article["context_text"]
    questions = [
        Question(
            str(asked["query_id"]), asked["query_text"], _marked(text, [{"text": words} for words in asked["answers"]])
        )
        for asked in article["qas"]
    ]
    return Paragraph(str(article.get("context_id", "")), article.get("title", ""), text, questions, where)


def _from_line(record: dict[str, Any], where: str) -> Iterator[Paragraph]:
    if "header" in record:  # the first line of an MRQA file
        return
    with _expecting(where, "a line of MRQA (context, qas) or of Natural Questions (document_text, annotations)"):
        of_nq = "document_text" in record or "document_tokens" in record
        paragraph = _natural_question(record, where) if of_nq else _mrqa(record, where)
    if paragraph:
        yield paragraph


def _mrqa(record: dict[str, Any], where: str) -> Paragraph:
    questions = [
        Question(
            str(asked["qid"]),
            asked["question"],
            [(start, last + 1) for answer in asked["detected_answers"] for start, last in answer["char_spans"]],
        )
        for asked in record["qas"]
    ]
    return Paragraph("", "", record["context"], questions, where)


def _natural_question(record: dict[str, Any], where: str) -> Paragraph | None:
    """The long answer, without its tags, with the short answers; None where there is no short answer.

    The simplified files have a text whose tokens blanks separate; the others a list of tokens that say what is a tag.
    """
    if "document_text" in record:
        tokens = record["document_text"].split(" ")
        tags = [bool(_TAG.fullmatch(token)) for token in tokens]
    else:
        tokens = [token["token"] for token in record["document_tokens"]]
        tags = [bool(token["html_token"]) for token in record["document_tokens"]]
    for annotation in record["annotations"]:
        start, end = annotation["long_answer"]["start_token"], annotation["long_answer"]["end_token"]
        if start < 0 or not annotation["short_answers"]:
            continue
        words, positions, length = [], {}, 0
        for index in range(start, end):
            if not tags[index]:
                positions[index] = (length, length + len(tokens[index]))
                words.append(tokens[index])
                length += len(tokens[index]) + 1
        spans = [range(short["start_token"], short["end_token"]) for short in annotation["short_answers"]]
        answers = [
            (min(answer_spans)[0], max(answer_spans)[1])
            for span in spans
            if (answer_spans := [positions[i] for i in span if i in positions])
        ]
        question = Question(str(record["example_id"]), record["question_text"], answers)
        return Paragraph("", "", " ".join(words), [question], where)
    return None


def _beir(corpus: Path, queries: Path, qrels: Path) -> Iterator[Paragraph]:
    """Passages as paragraphs; a question belongs to its relevant passage, its answers are in `metadata`."""
    asked: dict[str, list[dict[str, Any]]] = {}
    belongs: dict[str, str] = {}
    for qid, docid, grade in read_qrels(qrels)[0]:
        if grade:
            belongs.setdefault(qid, docid)
    for where, record in read_records(queries, TOPICS, "json"):
        with _expecting(where, "lines with _id, text and metadata"):
            answers = record.get("metadata", {}).get("answers")
            if answers is not None:
                asked.setdefault(belongs.get(str(record["_id"]), ""), []).append(record)
        if answers is None:
            raise InputError(f'{where}: no "answers" in "metadata"; without them no sentence is relevant')
    for where, record in read_records(corpus, DOCUMENTS, "json"):
        with _expecting(where, "lines with _id, title and text"):
            questions = [
                Question(str(query["_id"]), query["text"], _marked(record["text"], query["metadata"]["answers"]))
                for query in asked.get(str(record["_id"]), ())
            ]
            paragraph = Paragraph(str(record["_id"]), record.get("title") or "", record["text"], questions, where)
        yield paragraph


def _marked(text: str, answers: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Where the answers stand: at their `answer_start` when the text is there, else where it stands nearest to it."""
    spans = []
    for answer in answers:
        words, start = answer["text"], answer.get("answer_start", 0)
        starts = [match.start() for match in re.finditer(re.escape(words), text)] if words else []
        if starts:
            nearest = min(starts, key=lambda nearest: abs(nearest - start))
            spans.append((nearest, nearest + len(words)))
    return sorted(set(spans))


def _check_strings(**values: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} is a {type(value).__name__}, not a string")


@contextlib.contextmanager
def _expecting(where: str, expected: str) -> Iterator[None]:
    """Turns a key that is missing, or a value of another type, into one line."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError) as error:
        raise InputError(f"{where}: {type(error).__name__} {error}; expected {expected}") from None
