"""Text formats that are damaged or ambiguous: every one is refused in one line that says where."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import refusal

from rnnreranker import Run
from rnnreranker.base.files import parse_json, read_json, read_yaml
from rnnreranker.base.record import read_records
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.reqa import read as paragraphs
from rnnreranker.data.topics import load_topics
from rnnreranker.lab.tune.collections import cells_of
from rnnreranker.lab.tune.request import Space
from rnnreranker.parts.vectors.ids import read_ids
from rnnreranker.regress.specs.spec import read_spec
from rnnreranker.rnn.params import RnnParams
from rnnreranker.train.fairness import neutrality_of

Reader = Callable[[Path], Any]


def documents(path: Path) -> list[tuple[str, str]]:
    return [(document.docid, document.text) for document in load_documents(path)]


def read_paragraphs(path: Path) -> list[Any]:
    return list(paragraphs([path]))


READERS: dict[str, tuple[Reader, Callable[[int], str]]] = {
    "topics.tsv": (load_topics, lambda i: f"q{i}\twords of {i * 7919}\n"),
    "topics.jsonl": (load_topics, lambda i: f'{{"_id": "q{i}", "text": "words of {i * 7919}"}}\n'),
    "qrels.txt": (load_qrels, lambda i: f"q{i} 0 d{i * 7919} 1\n"),
    "run.txt": (Run.read, lambda i: f"q{i} Q0 d{i * 7919} 1 1.5 t\n"),
    "docs.jsonl": (documents, lambda i: f'{{"id": "d{i}", "text": "words of {i * 7919}"}}\n'),
    "docs.tsv": (documents, lambda i: f"d{i}\twords of {i * 7919}\n"),
    "docs.trec": (documents, lambda i: f"<DOC>\n<DOCNO>d{i}</DOCNO>\n<TEXT>\n{i * 7919}\n</TEXT>\n</DOC>\n"),
    "squad.jsonl": (read_paragraphs, lambda i: f'{{"context": "of {i * 7919}", "qas": []}}\n'),
    "rows.ids": (read_ids, lambda i: f"d{i * 7919}\n"),
}


@pytest.mark.parametrize("name", READERS)
def test_gzip_that_is_damaged_in_the_middle_or_cut_off(tmp_path: Path, name: str) -> None:
    read, line = READERS[name]
    whole = gzip.compress("".join(map(line, range(3000))).encode(), mtime=0)
    path = tmp_path / f"{name}.gz"
    path.write_bytes(whole)
    read(path)
    middle = len(whole) // 2
    for damaged in (whole[:middle] + b"\xff" * 40 + whole[middle + 40 :], whole[:middle], whole[:-8] + b"\0" * 8):
        path.write_bytes(damaged)
        with refusal(rf"{name}\.gz(:\d+)?: ") as found:
            read(path)
        # of a stream a line may be wrong before the checksum, which stands at the end, is
        assert re.search("not a whole gzip file|not JSON|the element that ends here", str(found.value))
        assert "\n" not in str(found.value)


@pytest.mark.parametrize("name", READERS)
def test_a_nul_byte_is_refused_with_its_line(tmp_path: Path, name: str) -> None:
    read, line = READERS[name]
    content = "".join(map(line, range(9)))
    for file in (name, f"{name}.gz"):
        written = (content + line(9).replace("1", "\0", 1)).encode()
        (tmp_path / file).write_bytes(gzip.compress(written) if file.endswith(".gz") else written)
        number = written.count(b"\n", 0, written.index(b"\0")) + 1
        with refusal(rf"{name}(\.gz)?:{number}: a NUL byte"):
            read(tmp_path / file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "maximum recursion depth"),
        ("9" * 5000, "Exceeds the limit"),
        ('{"a": 1, "a": 2}', "key a stands there a second time"),
        (r'"\ud800"', "surrogates not allowed"),
        ("", "Expecting value"),
    ],
)
def test_json_that_the_decoder_fails_on_or_misreads(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with refusal(rf"x\.json.*: not JSON.*{said}"):
        read_json(path)
    with refusal(rf"^here: not JSON .*{said}"):
        parse_json(text, "here")
    for read, name in ((documents, "x.jsonl"), (load_topics, "x.jsonl"), (read_paragraphs, "x.jsonl")):
        (tmp_path / name).write_text(text or "{")
        with refusal(r"x\.jsonl:1: not JSON"):
            list(read(tmp_path / name))


DAMAGED = {
    "k: 3\nk: 4": "not YAML .key k stands here a second time",
    "k: " + "9" * 5000: "not YAML ",
    "k: !!int x": "not YAML ",
    "? [a]\n: b": "not YAML .a key that is no text",
    "k: \x07": "not YAML ",
    "k: " + "[" * 200_000: "not YAML .nested more than 100 deep",
    "- " * 200_000: "not YAML .nested more than 100 deep",
}


@pytest.mark.parametrize("text", DAMAGED, ids=lambda text: text[:20])
def test_yaml_that_is_damaged(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    for read in (
        read_yaml,
        RnnParams.named,
        lambda path: Space.of(path, RnnParams()),
        cells_of,
        read_spec,
    ):
        with refusal(rf"x\.yaml:?\d*: {DAMAGED[text]}") as found:
            read(path)
        assert "\n" not in str(found.value)


def test_plain_words_of_yaml(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    texts = ["010", "1:30", "1_000", "0b11", "yes", "Off", "2020-01-02", "1e-5", "x:y"]
    path.write_text(
        f"a: [1, -2, 0, 0x1f, 1.5, .5, 1.0e-3, .inf, true, False, null, ~, 'no', {', '.join(texts)}]\n"
        "b: &b {c: d}\ne: *b\n"
    )
    values = [1, -2, 0, 31, 1.5, 0.5, 1e-3, math.inf, True, False, None, None, "no", *texts]
    expected = {"a": values, "b": {"c": "d"}}
    first = read_yaml(path)
    assert first == expected | {"e": {"c": "d"}}


@pytest.mark.parametrize("name", ["a b", "a\u00a0b", "a\x1bb", "a\u2028b"])
def test_ids_with_white_space_are_refused_where_they_are_read(tmp_path: Path, name: str) -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in name)
    files: dict[str, tuple[Reader, str]] = {
        "docs.jsonl": (documents, f'{{"id": "{escaped}", "text": "x"}}'),
        "docs.tsv": (documents, f"{name}\tx"),
        "topics.jsonl": (load_topics, f'{{"id": "{escaped}", "text": "x"}}'),
        "topics.tsv": (load_topics, f"{name}\tx"),
        "qrels.txt": (load_qrels, f"q 0 {name} 1 1"),
        "rows.ids": (read_ids, f"{name}\n"),
        "docs.trec": (documents, f"<DOC>\n<DOCNO>{name}</DOCNO>\n</DOC>"),
    }
    for file, (read, text) in files.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
        with refusal(rf"{file}:1: "):
            read(tmp_path / file)


@pytest.mark.parametrize("text", ["", "a\t1_0\n", "a\t0.5\na\t0.6\n", "a b\t0.5\n"])
def test_neutralities_that_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "neutral.tsv").write_text(text)
    with refusal(r"neutral\.tsv:"):
        neutrality_of(tmp_path / "neutral.tsv")


def test_records_of_another_form(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    good = {"kind": "run", "spec": "s", "name": "n", "outcome": {}}
    for records in (
        None,
        3,
        [{**good, "versions": 7}],
        [{**good, "outcome": []}],
        [{**good, "kind": "x"}],
        [{**good, "seconds": "x"}],
    ):
        path.write_text(json.dumps({"schema": 3, "records": records}))
        with refusal(r"x\.json: (record \d is not one|expected records)"):
            read_records(path)
