"""ReQA: retrieval of the sentence that answers a question, made from reading-comprehension files.

Documents are the sentences of the paragraphs (paper 004, 4.1), topics the questions; sentences with a marked answer
are relevant. Questions without one are dropped. A made set is a folder in BEIR layout in the cache folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.base.files import cache_home, file_digest, fingerprint, folder_written_whole, write_json
from rnnreranker.data import reading_files
from rnnreranker.data.names import collections_home
from rnnreranker.data.reading_files import Paragraph
from rnnreranker.encode.words.segmentation import language_of

MADE_FROM = "reqa:"  # before the name of a file or folder: the set made from it
RULES = 2  # part of a made set's name: increase it when the same files give another set
NAMES = {
    "reqa-squad": "SQuAD v1.1: train-v1.1.json and dev-v1.1.json from https://rajpurkar.github.io/SQuAD-explorer",
    "reqa-nq": "Natural Questions: simplified-nq-train.jsonl.gz from https://ai.google.com/research/NaturalQuestions, "
    "or NaturalQuestionsShort.jsonl.gz of MRQA 2019",
    "reqa-cmrc": "CMRC 2018: cmrc2018_train.json and cmrc2018_dev.json from https://github.com/ymcui/cmrc2018",
    "reqa-drcd": "DRCD: DRCD_training.json, DRCD_dev.json and DRCD_test.json from "
    "https://github.com/DRCKnowledgeTeam/DRCD",
}


@dataclass(frozen=True)
class SentenceSet:
    """Sentence retrieval made from paragraphs.

    Attributes:
        documents: a record per sentence, as BEIR's; sentence 0 of paragraph p7 is `p7#s0`.
        topics: question id → question; qrels: question id → relevant docids; dropped: other question ids.
    """

    documents: list[dict[str, Any]]
    topics: dict[str, str]
    qrels: dict[str, list[str]]
    dropped: list[str]


def is_name(name: str) -> bool:
    """Whether a name is of a ReQA set or its split: `reqa-squad`, `reqa:FILE`, `reqa-cmrc:cold-1-test`."""
    return name.startswith(MADE_FROM) or name.partition(":")[0] in NAMES


def folder(name: str) -> Path:
    """The folder in BEIR layout of a name of `NAMES`, see `folder_of`.

    Raises:
        UnavailableError: no files (with where to get and put them).
    """
    home = collections_home() / name
    if not home.is_dir() or not any(home.iterdir()):
        raise UnavailableError(
            f"{name}: no files in {home}; download {NAMES[name]} (or some of them), and put them there"
        )
    return folder_of(home, name)


def folder_of(files: Path, name: str = "reqa") -> Path:
    """A folder of sentences (ids end in `#sN`) itself, else the one made from the files, as `made_folder`."""
    return files if files.is_dir() and reading_files.holds_sentences(files) else made_folder(files, name)


def made_folder(files: Path, name: str = "reqa") -> Path:
    """The folder in BEIR layout made, once, from paragraphs with questions.

    Raises:
        InputError: no such files, a malformed one, no question with an answer.
    """
    paths = reading_files.paths(files)
    key = fingerprint(RULES, None, *(part for path in paths for part in (path.name, file_digest(path))))
    target = cache_home() / "data" / "made" / f"{name}-{key}"
    if not (target / "made.json").is_file():
        made = sentence_set(reading_files.read(files))
        if not made.topics:
            raise InputError(
                f"{files}: no question with an answer ({len(made.dropped)} have none that stands in their paragraph); "
                "expected files in the format of SQuAD, with answers"
            )
        with folder_written_whole(target) as temporary:
            write_beir(temporary, made)
            counts = {"documents": len(made.documents), "topics": len(made.topics), "dropped": len(made.dropped)}
            write_json(temporary / "made.json", {"files": [path.name for path in paths], "rules": RULES, **counts})
    return target


def sentence_set(paragraphs: Iterable[Paragraph]) -> SentenceSet:
    """The sentences, questions and judgements of paragraphs.

    An answer makes every sentence that it touches relevant. Paragraphs of the same text are one.

    Raises:
        InputError: a question id twice, or a paragraph id with two texts.
    """
    documents: list[dict[str, Any]] = []
    topics: dict[str, str] = {}
    qrels: dict[str, list[str]] = {}
    dropped: list[str] = []
    known: dict[str, tuple[str, list[tuple[int, int]]]] = {}
    ids: set[str] = set()
    asked: set[str] = set()
    for paragraph in paragraphs:
        if paragraph.text not in known:
            if paragraph.id in ids:
                raise InputError(f"{paragraph.where}: paragraph {paragraph.id} stands here with another text")
            ids.add(paragraph.id)
            spans = sentence_spans(paragraph.text)
            known[paragraph.text] = paragraph.id, spans
            for number, (start, end) in enumerate(spans):
                sentence = {"_id": f"{paragraph.id}#s{number}", "text": paragraph.text[start:end]}
                documents.append({**sentence, "metadata": {"title": paragraph.title}})
        identity, spans = known[paragraph.text]
        for question in paragraph.questions:
            if question.id in asked:
                raise InputError(f"{paragraph.where}: question {question.id} stands here a second time")
            asked.add(question.id)
            held = {
                number
                for start, end in question.answers
                for number, (first, last) in enumerate(spans)
                if start < last and end > first
            }
            if held:
                topics[question.id] = question.text.strip()
                qrels[question.id] = [f"{identity}#s{number}" for number in sorted(held)]
            else:
                dropped.append(question.id)
    return SentenceSet(documents, topics, qrels, dropped)


def write_beir(folder: Path, made: SentenceSet) -> None:
    queries = [{"_id": qid, "text": text} for qid, text in made.topics.items()]
    for name, records in (("corpus", made.documents), ("queries", queries)):
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (folder / "qrels").mkdir()
    judged = [f"{qid}\t{docid}\t1\n" for qid, docids in made.qrels.items() for docid in docids]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(judged), encoding="utf-8")


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
_BEFORE_NUMBERS = frozenset(_NUMBERED.split())  # abbreviations where a digit follows
_INITIAL = re.compile(r"(?:[A-Za-z]\.)+$")  # J.  U.S.  a.m.


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """The sentences of a text: (start, end) character positions, without white space at both ends.

    A text is Chinese if a tenth of its characters are, else English. An English sentence ends at a blank line, and
    after `.`, `!`, `?` or `…` before white space and a capital, digit, opening quote or bracket, except after
    abbreviations. A Chinese one ends at a line break, and after `。`, `；`, `！` or `？` outside a title.

    >>> [text[a:b] for text in ["Dr. No sat. He said: \\"Yes!\\" It was 3.5 m."] for a, b in sentence_spans(text)]
    ['Dr. No sat.', 'He said: "Yes!"', 'It was 3.5 m.']
    """
    language = language_of(text)
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
    kept: list[tuple[int, int]] = []
    waiting: int | None = None  # where a text begins that has had no word yet
    for first, last in sentences:
        piece = text[first:last]
        first, last = first + len(piece) - len(piece.lstrip()), last - (len(piece) - len(piece.rstrip()))
        if any(map(str.isalnum, piece)):
            kept.append((first if waiting is None else waiting, last))
            waiting = None
        elif piece.strip() and kept:
            kept[-1] = kept[-1][0], last
        elif piece.strip() and waiting is None:
            waiting = first
    return kept


def _abbreviated(sentence: str, rest: str) -> bool:
    if not sentence.endswith("."):
        return False
    word = re.split(r"[\s\"'“‘(\[]", sentence)[-1]
    known = _ABBREVIATIONS | _BEFORE_NUMBERS if rest.lstrip()[:1].isdigit() else _ABBREVIATIONS
    return word.lower() in known or bool(_INITIAL.match(word))
