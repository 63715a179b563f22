"""ReQA: retrieval of the sentence that answers a question, made from reading-comprehension files.

Documents are the sentences of the paragraphs (paper 004, 4.1), topics the questions; sentences with a marked answer
are relevant. Questions without one are dropped. A made set is a folder in BEIR layout in the cache folder.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import (
    cache_home,
    file_digest,
    fingerprint,
    folder_written_whole,
    parse_record,
    read_json,
    read_lines,
)
from rnnreranker.encode.words.analysis import Spans, language_of

MADE_FROM = "reqa:"  # before the name of a file or folder: the set made from it
RULES = 2  # part of a made set's name: increase it when the same files give another set
NAMES = {  # name → its files
    "reqa-squad": "SQuAD v1.1: train-v1.1.json and dev-v1.1.json from https://rajpurkar.github.io/SQuAD-explorer",
    "reqa-nq": "Natural Questions: NaturalQuestionsShort.jsonl.gz of https://github.com/mrqa/MRQA-Shared-Task-2019",
    "reqa-cmrc": "CMRC 2018: cmrc2018_train.json and cmrc2018_dev.json from https://github.com/ymcui/cmrc2018",
    "reqa-drcd": "DRCD: DRCD_training.json, DRCD_dev.json and DRCD_test.json from "
    "https://github.com/DRCKnowledgeTeam/DRCD",
}
ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz")

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


class Paragraph(NamedTuple):
    """A paragraph with its questions: id, text, and the marked answers as (start, end) character positions."""

    where: str
    id: str
    title: str
    text: str
    questions: list[tuple[str, str, Spans]]


def is_name(name: str) -> bool:
    """Whether a name is of a ReQA set or its split: `reqa-squad`, `reqa:FILE`, `reqa-cmrc:cold-1-test`."""
    return name.startswith(MADE_FROM) or name.partition(":")[0] in NAMES


def made_folder(files: Path) -> Path:
    """The folder in BEIR layout made, once, from the paragraphs with questions of a file or folder.

    Raises:
        InputError: no such files, a malformed one, no question with an answer.
    """
    paths = paragraph_files(files)
    key = fingerprint(RULES, None, *(part for path in paths for part in (path.name, file_digest(path))))
    target = cache_home() / "data" / "made" / f"reqa-{key}"
    if target.is_dir():
        return target
    documents, asked = sentence_set(read(paths))
    answered = {qid: one for qid, one in asked.items() if one[1]}
    if not answered:
        raise InputError(
            f"{files}: none of {len(asked)} questions has an answer in its paragraph; expected the format of SQuAD"
        )
    queries = ({"_id": qid, "text": text} for qid, (text, _) in answered.items())
    judged = [f"{qid}\t{docid}\t1" for qid, (_, docids) in answered.items() for docid in docids]
    with folder_written_whole(target) as folder:
        (folder / "qrels").mkdir()
        (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged, ""]), "utf-8")
        for file, records in (("corpus.jsonl", documents), ("queries.jsonl", queries)):
            lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in records)
            (folder / file).write_text("".join(lines), encoding="utf-8")
    return target


def sentence_set(paragraphs: Iterable[Paragraph]) -> tuple[list[dict[str, Any]], dict[str, tuple[str, list[str]]]]:
    """A record per sentence, as BEIR's (`p7#s0` is sentence 0 of p7); question id → question, ids of its sentences.

    An answer makes every sentence that it touches relevant. Paragraphs of the same text are one.

    Raises:
        InputError: a question id twice, or a paragraph id with two texts.
    """
    documents: list[dict[str, Any]] = []
    asked: dict[str, tuple[str, list[str]]] = {}
    known: dict[str, tuple[str, Spans]] = {}
    ids: set[str] = set()
    for where, paragraph, title, text, questions in paragraphs:
        if text not in known:
            if paragraph in ids:
                raise InputError(f"{where}: paragraph {paragraph} stands here with another text")
            ids.add(paragraph)
            known[text] = paragraph, sentence_spans(text)
            for number, (start, end) in enumerate(known[text][1]):
                sentence = {"_id": f"{paragraph}#s{number}", "text": text[start:end]}
                documents.append({**sentence, "metadata": {"title": title}})
        first, spans = known[text]
        for qid, question, answers in questions:
            if qid in asked:
                raise InputError(f"{where}: question {qid} stands here a second time")
            touched = (any(start < last and end > begin for start, end in answers) for begin, last in spans)
            asked[qid] = question.strip(), [f"{first}#s{number}" for number, one in enumerate(touched) if one]
    return documents, asked


def paragraph_files(files: Path) -> list[Path]:
    """The file itself, or the files of a folder by name; InputError: no files."""
    if files.is_file():
        return [files]
    paths = sorted(path for path in files.glob("*") if path.name.endswith(ENDINGS))
    if not paths:
        raise InputError(f"{files}: no {' or '.join(ENDINGS[:2])} file, plain or .gz; expected the format of SQuAD")
    return paths


def read(paths: Iterable[Path]) -> Iterator[Paragraph]:
    """The paragraphs of files, streamed; those without an id are p0, p1, ….

    Raises:
        InputError: a file of another format (with where).
    """
    number = 0
    for where, record in itertools.chain.from_iterable(map(_records, paths)):
        try:
            own = record.get("paragraphs", [] if "header" in record else [record])  # the first line of MRQA's files
            paragraphs = [_paragraph(where, record.get("title", ""), one) for one in own]
        except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError) as error:
            said = f"{type(error).__name__} {error}"
            raise InputError(f"{where}: {said}; expected the format of SQuAD, DRCD, CMRC or MRQA") from None
        for paragraph in paragraphs:
            yield paragraph if paragraph.id else paragraph._replace(id=f"p{number}")
            number += 1


def _records(path: Path) -> Iterator[tuple[str, Any]]:
    """The articles of a file, or its lines, each with its place."""
    if ".jsonl" in path.name:
        for number, line in read_lines(path, "file of paragraphs"):
            yield f"{path}:{number}", parse_record(line, f"{path}:{number}")
        return
    content = read_json(path, "file of paragraphs")
    articles = content.get("data") if isinstance(content, dict) else content
    if not isinstance(articles, list):
        raise InputError(f'{path}: no list "data" of articles; expected the format of SQuAD')
    yield from ((f"{path}: article {number}", article) for number, article in enumerate(articles))


def _paragraph(where: str, title: Any, record: dict[str, Any]) -> Paragraph:
    """The paragraph of a record with `qas`."""
    text, questions = _first(record, "context", "context_text"), []
    for asked in record["qas"]:
        if "detected_answers" in asked:  # of MRQA
            spans = [span for answer in asked["detected_answers"] for span in answer["char_spans"]]
            answers = [(start, last + 1) for start, last in spans]
        else:
            answers = _marked(text, asked["answers"])
        question = _first(asked, "question", "query_text")
        questions.append((str(_first(asked, "qid", "id", "query_id")), question, answers))
    "".join([title, text, *(question for _, question, _ in questions)])  # raises TypeError for other types
    return Paragraph(where, str(record.get("id", record.get("context_id", ""))), title, text, questions)


def _first(record: dict[str, Any], *names: str) -> Any:
    return record[next((name for name in names if name in record), names[0])]


def _marked(text: str, answers: list[Any]) -> Spans:
    """The positions of answers (texts, or objects with a `text`), each nearest to its `answer_start`."""
    spans = set()
    for answer in answers:
        words, start = (answer, 0) if isinstance(answer, str) else (answer["text"], answer.get("answer_start", 0))
        starts = [match.start() for match in re.finditer(re.escape(words), text)] if words else []
        if starts:
            nearest = min(starts, key=lambda at: abs(at - start))
            spans.add((nearest, nearest + len(words)))
    return sorted(spans)


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
