"""Runs, judgements, topics, documents, ids and other lines of text, plain and .gz, and folders in BEIR layout."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mutations.format import Format
from rnnreranker import Run
from rnnreranker.adapters.rank_llm import read_requests
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.reading_files import read as read_paragraphs
from rnnreranker.data.topics import load_topics
from rnnreranker.evaluate.pool.pooling import read_sheets
from rnnreranker.parts.vectors.ids import read_ids
from rnnreranker.train.query.fairness import read_neutrality


def content_of(path: Path) -> bytes:
    """The bytes of a file; of a .gz what it holds, by the command line's rules: several members, nothing behind."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def text_of(path: Path) -> str:
    text = content_of(path).decode().removeprefix("\ufeff")
    assert "\0" not in text
    return text


def lines_of(path: Path) -> list[str]:
    return [line for line in text_of(path).split("\n") if line.strip()]


def slow_run(path: Path) -> Any:
    found: dict[str, dict[str, float]] = {}
    for line in content_of(path).removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if columns := line.split():
            score = float(columns[4]) if len(columns) == 6 else 1 / int(columns[2])
            qid, docid = columns[0].decode(), columns[2 if len(columns) == 6 else 1].decode()
            assert docid not in found.setdefault(qid, {})
            found[qid][docid] = score
    ordered = {}
    for qid, scores in found.items():
        ordered[qid] = sorted(scores.items(), key=lambda one: (-one[1], one[0].encode()))
    return ordered


def read_run(path: Path) -> Any:
    run = Run.read(path)
    names = run.docids[run.rows]
    places = zip(run.qids, run.offsets[:-1], run.offsets[1:], strict=True)
    return {qid: list(zip(names[a:b], run.scores[a:b].tolist(), strict=True)) for qid, a, b in places}


def read_judgements(path: Path | str) -> Any:
    return list(load_qrels(path).itertuples(index=False, name=None))


def slow_qrels(path: Path) -> Any:
    rows = [line.split() for line in lines_of(path)]
    header = rows[0][:1] == ["query-id"]
    return [(row[0], row[-2], int(float(row[-1]))) for row in rows[header:]]


def slow_topics(path: Path) -> Any:
    rows = [line.split("\t") for line in lines_of(path)]
    header = rows[0][0].strip() == "qid"
    found = {row[0].strip(): row[1].strip() for row in rows[header:]}
    assert len(found) == len(rows) - header
    return found


def slow_json_lines(path: Path) -> list[tuple[str, str]]:
    records = [json.loads(line) for line in lines_of(path)]
    return [(str(next(one[key] for key in ("_id", "id", "docid") if key in one)), _text(one)) for one in records]


def slow_json_topics(path: Path) -> Any:
    records = [json.loads(line) for line in lines_of(path)]
    found = {}
    for one in records:
        text = one["text"] if "text" in one else one["title"]
        found[str(one["_id"] if "_id" in one else one["id"])] = text.strip()
    return found


def _text(record: dict[str, Any]) -> str:
    text = next(record[key] for key in ("text", "contents") if key in record)
    return f"{record['title']}\n{text}" if record.get("title") else str(text)


def slow_tsv(path: Path) -> Any:
    rows = [line.rstrip("\r").split("\t") for line in lines_of(path)]
    assert {len(row) for row in rows} in (set(), {2}, {3})
    return [(row[0].strip(), "\n".join([*filter(None, row[2:]), row[1]])) for row in rows]


def slow_ids(path: Path) -> Any:
    names = text_of(path).replace("\r\n", "\n").split("\n")
    return names[:-1] if names[-1] == "" else names


def read_documents(path: Path | str) -> Any:
    return [(document.docid, document.text) for document in load_documents(path)]


def slow_sheet(path: Path) -> Any:
    header, *rows = [line.split("\t") for line in lines_of(path)]
    names = [name.strip() for name in header]
    found = []
    for row in rows:
        cells = dict(zip(names, [*map(str.strip, row), ""], strict=False))
        found.append((cells["qid"], cells["docid"], int(cells["grade"]) if cells["grade"] else None))
    return found


def slow_neutrality(path: Path) -> Any:
    rows = [line.removesuffix("\r").split("\t") for line in text_of(path).removesuffix("\n").split("\n")]
    assert len({docid for docid, _ in rows}) == len(rows)
    return {docid: float(value) for docid, value in rows}


def slow_requests(path: Path) -> Any:
    if text_of(path).lstrip().startswith("["):
        return json.loads(text_of(path))
    return [json.loads(line) for line in lines_of(path)]


def slow_squad(path: Path) -> Any:
    content = json.loads(text_of(path))
    articles = content["data"] if isinstance(content, dict) else content
    found = []
    for article in articles:
        for paragraph in article["paragraphs"]:
            asked = [(str(one["id"]), one["question"]) for one in paragraph["qas"]]
            found.append((paragraph["context"], asked))
    return found


def read_squad(path: Path) -> Any:
    return [(one.text, [(asked.id, asked.text) for asked in one.questions]) for one in read_paragraphs(path)]


RUN = b"q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1.5 t\nq2 Q0 d1 1 -1e-3 t\nq2 Q0 d\xc3\xb6 2 -1e-3 t\n"
QRELS = b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 3\n"
TOPICS = "q1\tone word\nq2\tzwölf Wörter\tand more\nq3\tthree\n".encode()
TREC = b"<top>\n<num> Number: 301\n<title> one word\n\n<desc> Description:\nwhat\n</top>\n"
TREC += b"<top>\n<num>302</num>\n<title> Topic: two\nwords</title>\n<narr> Narrative:\nlong\n</top>\n"
DOCUMENTS = '{"_id": "a", "title": "T", "text": "eins"}\n{"id": 7, "contents": "zwö"}\n'.encode()
XML = b"<DOC>\n<DOCNO>d1</DOCNO>\n<TITLE>A title</TITLE>\n<TEXT>\nsome\ntext\n</TEXT>\n</DOC>\n"
XML += b"<DOC>\n<DOCNO> d2 </DOCNO>\n<URL>x</URL>\n<TEXT>one line</TEXT>\n</DOC>\n"
SQUAD = b'{"data": [{"title": "T", "paragraphs": [{"context": "a b c", "qas": [{"id": "1", "question": "which?", '
SQUAD += b'"answers": [{"text": "b", "answer_start": 2}]}]}]}]}'
REQUESTS = b'{"query": {"text": "a", "qid": "q"}, "candidates": [{"docid": "d", "score": 1.5, "doc": {"c": "x"}}]}\n'
REQUESTS += b'{"query": {"text": "b", "qid": 2}, "candidates": []}\n'

Reader = Callable[[Path], Any]
FILES: dict[str, tuple[str, bytes, Reader, Reader, float]] = {
    "run, TREC": ("run.trec", RUN, read_run, slow_run, 1.5),
    "run, MS MARCO": ("run.tsv", b"q1\td1\t1\nq1\td2\t2\nq2\td1\t1\n", read_run, slow_run, 1),
    "run, gzip": ("run.trec.gz", RUN, read_run, slow_run, 0.7),
    "qrels, TREC": ("qrels.txt", QRELS, read_judgements, slow_qrels, 1),
    "qrels, BEIR": (
        "qrels.tsv", b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\n", read_judgements, slow_qrels, 0.7,
    ),
    "qrels, gzip": ("qrels.gz", QRELS, read_judgements, slow_qrels, 0.7),
    "topics, TSV": ("topics.tsv", TOPICS, load_topics, slow_topics, 1),
    "topics, JSON lines": (
        "topics.jsonl", b'{"_id": "q1", "text": "one"}\n{"id": 2, "text": "tw\\u00f6"}\n', load_topics,
        slow_json_topics, 1,
    ),
    "topics, TREC": ("topics.txt", TREC, load_topics, load_topics, 1),  # no second reader: refused or read, no more
    "topics, gzip": ("topics.tsv.gz", TOPICS, load_topics, slow_topics, 0.7),
    "documents, JSON lines": ("docs.jsonl", DOCUMENTS, read_documents, slow_json_lines, 1),
    "documents, TSV": ("docs.tsv", "a\tone\nb\tzwö two\r\nc\t\n".encode(), read_documents, slow_tsv, 1),
    "documents, TREC": ("docs.trec", XML, read_documents, read_documents, 1),  # nor here
    "documents, gzip": ("docs.jsonl.gz", DOCUMENTS, read_documents, slow_json_lines, 0.7),
    "ids": ("rows.ids", "d1\nd2\ndö\n".encode(), lambda path: read_ids(path).names, slow_ids, 1),
    "judgement sheet": (
        "sheet.tsv", b"qid\ttext\tdocid\tgrade\nq1\tx\td1\t2\nq1\ty\td2\t\n",
        lambda path: [(row.qid, row.docid, row.grade) for row in read_sheets([path])], slow_sheet, 0.7,
    ),
    "neutralities": ("neutral.tsv", b"d1\t0.5\nd2\t1\nd3\t0\n", read_neutrality, slow_neutrality, 0.7),
    "rank_llm requests": ("requests.jsonl", REQUESTS, read_requests, slow_requests, 0.7),
    "paragraphs, SQuAD": ("squad.json", SQUAD, read_squad, slow_squad, 0.7),
}  # fmt: skip


def _of_file(title: str) -> Format:
    name, valid, read, slow, weight = FILES[title]

    def make(folder: Path) -> None:
        (folder / name).write_bytes(gzip.compress(valid, mtime=0) if name.endswith(".gz") else valid)

    return Format(title, make, (name,), lambda folder: read(folder / name), lambda folder: slow(folder / name), weight)


def _make_beir(folder: Path) -> None:
    (folder / "qrels").mkdir()
    (folder / "corpus.jsonl").write_bytes(DOCUMENTS)
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "one"}\n{"_id": "q2", "text": "two"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")


def _read_beir(folder: Path) -> Any:
    return [read_documents(str(folder)), load_topics(str(folder)), read_judgements(str(folder))]


def _slow_beir(folder: Path) -> Any:
    judged = slow_qrels(folder / "qrels" / "test.tsv")
    topics = slow_json_topics(folder / "queries.jsonl")
    asked = {row[0] for row in judged}
    kept = {qid: text for qid, text in topics.items() if qid in asked}
    return [slow_json_lines(folder / "corpus.jsonl"), kept, judged]


FORMATS = [_of_file(title) for title in FILES]
FORMATS.append(
    Format("folder, BEIR", _make_beir, ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"), _read_beir, _slow_beir)
)
