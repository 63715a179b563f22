"""Valid small text files, mutated: what is read is what an independent reader finds, or one line says what is wrong.

The short form runs with the other tests; `RNNRERANKER_MUTATIONS=2000 pytest -m slow tests/test_mutated_files.py` tries
that many of every format.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rnnreranker import Run
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics
from rnnreranker.errors import InputError
from rnnreranker.files.json_files import read_json
from rnnreranker.files.yaml_files import read_yaml
from rnnreranker.rnn.params import RnnParams
from rnnreranker.vectors.ids import read_ids

MANY = int(os.environ.get("RNNRERANKER_MUTATIONS", "300"))


def lines_of(content: bytes) -> list[str]:
    return [line for line in content.decode().removeprefix("\ufeff").split("\n") if line.strip()]


def slow_run(content: bytes) -> Any:
    found: dict[str, dict[str, float]] = {}
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if columns := [column.decode(errors="replace") for column in line.split()]:
            score = float(columns[4]) if len(columns) == 6 else 1 / int(columns[2])
            docid = columns[2] if len(columns) == 6 else columns[1]
            assert docid not in found.setdefault(columns[0], {})
            found[columns[0]][docid] = score
    return found


def slow_qrels(content: bytes) -> Any:
    rows = [line.split() for line in lines_of(content)]
    rows = rows[1:] if rows[0][0] == "query-id" and lines_of(content)[0] in content.decode().split("\n")[0] else rows
    return [(row[0], row[-2], int(float(row[-1]))) for row in rows]


def slow_topics(content: bytes) -> Any:
    rows = [line.split("\t") for line in lines_of(content)]
    return {row[0].strip(): row[1].strip() for row in rows}


def slow_json_lines(content: bytes) -> Any:
    records = [json.loads(line) for line in lines_of(content)]
    return [
        (str(next(record[key] for key in ("_id", "id", "docid") if key in record)), _text(record)) for record in records
    ]


def _text(record: dict[str, Any]) -> str:
    text = next(record[key] for key in ("text", "contents") if key in record)
    return f"{record['title']}\n{text}" if record.get("title") else str(text)


def slow_tsv(content: bytes) -> Any:
    return [(line.split("\t", 1)[0].strip(), line.split("\t", 1)[1].rstrip("\r")) for line in lines_of(content)]


def slow_ids(content: bytes) -> Any:
    names = content.decode().removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    return names[:-1] if names[-1] == "" else names


def slow_yaml(content: bytes) -> Any:
    import yaml

    return yaml.load(content.decode().removeprefix("\ufeff"), Loader=yaml.SafeLoader)


def read_run(path: Path) -> Any:
    run = Run.read(path)
    names = run.docids[run.rows]
    places = zip(run.qids, run.offsets[:-1], run.offsets[1:], strict=True)
    return {qid: dict(zip(names[a:b], run.scores[a:b].tolist(), strict=True)) for qid, a, b in places}


def read_documents(path: Path) -> Any:
    return [(document.docid, document.text) for document in load_documents(path)]


def read_params(path: Path) -> Any:
    return {key: value for key, value in RnnParams.from_yaml(path).to_dict().items() if key in ("k", "lam")}


def slow_json(content: bytes) -> Any:
    return json.loads(content.decode().removeprefix("\ufeff"))


def slow_params(content: bytes) -> Any:
    found = {key: value for key, value in (slow_yaml(content) or {}).items() if key in ("k", "lam")}
    found = {key: float(value) if key == "lam" else value for key, value in found.items()}
    default = RnnParams().to_dict()
    return {"k": default["k"], "lam": default["lam"]} | found


FORMATS: dict[str, tuple[Callable[[Path], Any], Callable[[bytes], Any], bytes]] = {
    "run.trec": (read_run, slow_run, b"q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1.5 t\nq2 Q0 d1 1 -1e-3 t\n"),
    "run.tsv": (read_run, slow_run, b"q1\td1\t1\nq1\td2\t2\nq2\td1\t1\n"),
    "qrels.txt": (
        lambda path: list(load_qrels(path).itertuples(index=False, name=None)),
        slow_qrels,
        b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 3\n",
    ),
    "qrels.tsv": (
        lambda path: list(load_qrels(path).itertuples(index=False, name=None)),
        slow_qrels,
        b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\n",
    ),
    "topics.tsv": (load_topics, slow_topics, "q1\tone word\nq2\tzwölf Wörter\nq3\tthree\n".encode()),
    "topics.jsonl": (
        lambda path: list(load_topics(path).items()),
        lambda content: [(qid, text.strip()) for qid, text in slow_json_lines(content)],
        b'{"_id": "q1", "text": "one"}\n{"id": 2, "text": "tw\\u00f6"}\n',
    ),
    "docs.jsonl": (
        read_documents,
        slow_json_lines,
        '{"_id": "a", "title": "T", "text": "eins"}\n{"id": 7, "contents": "zwö"}\n'.encode(),
    ),
    "docs.tsv": (read_documents, slow_tsv, "a\tone\nb\tzwö two\r\nc\t\n".encode()),
    "rows.ids": (lambda path: read_ids(path).names, slow_ids, "d1\nd2\ndö\n".encode()),
    "any.json": (
        read_json,
        slow_json,
        b'{"a": [1, 2.5, null], "b": {"c": "d"}}',
    ),
    "any.yaml": (read_yaml, slow_yaml, b"a: 1\nb: [x, 2.5, true]\nc: {d: 'e', f: null}\n"),
    "preset.yaml": (read_params, slow_params, b"k: 12\nlam: 0.25\n"),
}

PIECES = [b"\0", b"\t", b" ", b"\r", b"\n", b"\xff", b"\xc2\xa0", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\x1b[31m", b"nan"]
PIECES += [
    b"0",
    b"-",
    b"1e999",
    b"9" * 400,
    b"0x1F",
    b"1_0",
    b"1:30",
    b"yes",
    b"[" * 2000,
    b"{",
    b'"',
    b"\\ud800",
    b"\xf0\x9f\x92\xa9",
]


@st.composite
def mutations(draw: st.DrawFn, content: bytes) -> bytes:
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(content)))
        end = min(len(content), place + draw(st.integers(0, 12)))
        kind = draw(st.sampled_from(["flip", "cut", "drop", "repeat", "insert", "swap", "end"]))
        if kind == "flip" and place < len(content):
            flipped = bytes([content[place] ^ (1 << draw(st.integers(0, 7)))])
            content = content[:place] + flipped + content[place + 1 :]
        elif kind == "cut":
            content = content[:place]
        elif kind == "drop":
            content = content[:place] + content[end:]
        elif kind == "repeat":
            content = content[:end] + content[place:end] * draw(st.integers(1, 3)) + content[end:]
        elif kind == "insert":
            content = content[:place] + draw(st.sampled_from(PIECES) | st.binary(max_size=4)) + content[place:]
        elif kind == "swap":
            content = content[end:] + content[:end]
        else:
            content += content
    return content


def check(name: str, content: bytes) -> None:
    read, slow, _ = FORMATS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            found = read(path)
        except InputError as error:
            said = str(error)
        else:
            said = ""
        if said:
            assert "\n" not in said
            assert said.startswith((str(path), "query ", "docid ")), said
            return
    expected = slow(content)
    assert repr(found) == repr(expected) or found == expected  # repr: NaN is NaN


@pytest.mark.parametrize("name", FORMATS)
def test_the_independent_reader_agrees_on_what_is_valid(name: str) -> None:
    check(name, FORMATS[name][2])


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(data=st.data())
def test_mutated_files_are_read_right_or_refused(name: str, data: st.DataObject) -> None:
    check(name, data.draw(mutations(FORMATS[name][2])))


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=MANY, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(data=st.data())
def test_many_mutated_files_are_read_right_or_refused(name: str, data: st.DataObject) -> None:
    check(name, data.draw(mutations(FORMATS[name][2])))
