"""Topics, qrels and documents from files, built-in names and ir_datasets ids, and what is said about bad ones."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import ir_measures
import numpy as np
import pandas
import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.data.document import Document
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels, qrels_of
from rnnreranker.data.topics import load_narratives, load_topics


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_topics_from_tsv_and_narratives(tmp_path: Path) -> None:
    path = written(tmp_path / "topics.tsv", "qid\tquery\tnarrative\n2\tsecond query\tfinds b\n\n1\t first \n")
    assert load_topics(path) == {"2": "second query", "1": "first"}
    assert load_narratives(path) == {"2": "finds b"}


def test_topics_are_lines_whatever_else_unicode_ends_lines_with(tmp_path: Path) -> None:
    as_json = written(
        tmp_path / "queries.jsonl", '{"_id": "1", "text": "one\u2028line"}\r\n{"_id": "2", "text": "b\x85c"}'
    )
    assert load_topics(as_json) == {"1": "one\u2028line", "2": "b\x85c"}
    marked = written(tmp_path / "topics.tsv", "\ufeffq1\tone\x0cpage\r\nq2\ttwo\tfinds it\r\n")
    assert load_topics(marked) == {"q1": "one\x0cpage", "q2": "two"}
    assert load_narratives(marked) == {"q2": "finds it"}


def test_documents_after_a_byte_order_mark(tmp_path: Path) -> None:
    for name, text in (("d.tsv", "\ufeffa\ttext\n"), ("d.jsonl", '\ufeff{"id": "a", "text": "text"}\n')):
        assert [(d.docid, d.text) for d in load_documents(written(tmp_path / name, text))] == [("a", "text")]


def test_topics_from_json_lines_in_gzip(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"_id": 7, "text": "seven"}\n{"id": "x", "text": "ex"}\n'))
    assert load_topics(path) == {"7": "seven", "x": "ex"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\ta\n1\tb\n", ":2: query id 1 stands here a second time"),
        (
            "1\ta\nno tab here\n",
            ":2: 1 tab-separated column (is there a blank in place of the tab?); expected qid<TAB>text",
        ),
        ("1\t \n", ":1: query 1 has no text"),
        ("", "no topics; expected one query a line"),
    ],
)
def test_bad_topics_say_where(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path / "topics.tsv", text)
    with pytest.raises(InputError) as caught:
        load_topics(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_bad_bytes_say_which_line(tmp_path: Path) -> None:
    path = tmp_path / "topics.tsv"
    path.write_bytes(b"1\tfine\n2\t\xff\xfe\n")
    with pytest.raises(InputError, match=r"topics\.tsv:2: not UTF-8"):
        load_topics(path)


@pytest.mark.parametrize("lines", ["q 0 a 1\nq 0 b -1\n", "query-id\tcorpus-id\tscore\nq\ta\t1\nq\tb\t-1\n"])
def test_qrels_of_trec_and_beir(tmp_path: Path, lines: str) -> None:
    frame = load_qrels(written(tmp_path / "qrels.tsv", lines))
    assert frame.to_dict("list") == {"query_id": ["q", "q"], "doc_id": ["a", "b"], "relevance": [1, -1]}


FRAME = pandas.DataFrame({"query_id": ["1", "1"], "doc_id": ["2", "3"], "relevance": [2, 1]})


@pytest.mark.parametrize(
    "given",
    [
        {"1": {"2": 2, "3": 1}},
        {1: {2: np.int64(2), 3: 1.0}},
        [("1", "2", 2), ("1", "3", 1)],
        [ir_measures.Qrel("1", "2", 2), ir_measures.Qrel("1", "3", 1)],
        FRAME.astype({"query_id": int, "doc_id": int}),
        FRAME.astype({"query_id": object, "relevance": float}).assign(iteration="0"),
        FRAME.rename(columns={"query_id": "qid", "doc_id": "docno", "relevance": "label"}),
        pandas.concat([FRAME, FRAME]),
    ],
)
def test_qrels_of_objects(given: object) -> None:
    assert qrels_of(given).to_dict("list") == FRAME.to_dict("list")  # type: ignore[arg-type]
    for docids in (["2", "3"], ("2", "3"), dict.fromkeys(["2", "3"], 1)):
        assert qrels_of({"1": docids}).to_dict("list") == FRAME.assign(relevance=1).to_dict("list")
    assert len(qrels_of({"1": {"2", "3"}})) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pandas.concat([FRAME, FRAME.assign(relevance=1)]), "2 has grade 1 for query 1, and 2; expected one grade"),
        (FRAME.assign(relevance=[1, 1.5]), "query 1, document 3: 1.5; expected a whole number"),
        (FRAME.assign(relevance=[1, None]), "query 1, document 3: nan; expected a whole number"),
        (FRAME.assign(doc_id=["2", None]), "doc_id nan is of type float; expected text"),
        (FRAME.assign(query_id=1.0), "query_id 1.0 is of type float; expected text"),
        (FRAME[["query_id", "relevance"]], "no column doc_id; expected a name, a file"),
        ({"1": {"2": True}}, "query 1, document 2: True; expected a whole number"),
        ({"1": "2"}, "query 1: '2'; expected a name, a file"),
        ({"1": {"2": 2**40}}, "expected a whole number"),
        ({}, "no judgements"),
        (["1"], "'1'; expected a name, a file"),
        (None, "NoneType; expected a name, a file"),
    ],
)
def test_objects_that_are_no_qrels(given: object, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        qrels_of(given)  # type: ignore[arg-type]


def test_a_file_may_repeat_a_judgement_but_not_change_it(tmp_path: Path) -> None:
    lines = "q 0 a 1\n\nq 0 b 2\nq 0 a 1\n"
    assert load_qrels(written(tmp_path / "qrels.txt", lines)).values.tolist() == [["q", "a", 1], ["q", "b", 2]]
    with pytest.raises(InputError, match=r"qrels\.txt:5: b has grade 0 for query q, and 2 on line 3"):
        load_qrels(written(tmp_path / "qrels.txt", lines + "q 0 b 0\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q 0 a 1\nq 0 a 2\n", ":2: a has grade 2 for query q, and 1 on line 1; expected one grade"),
        ("q 0 a high\n", ":1: grade 'high'; expected a whole number"),
        ("q 0 a 1e3\n", ":1: grade '1e3'; expected a whole number"),
        ("q 0 a 1_0\n", ":1: grade '1_0'; expected a whole number"),
        ("q 0 a \u0661\n", ":1: grade '\u0661'; expected a whole number"),
        ("q 0 a 1.5\n", ":1: grade '1.5'; expected a whole number"),
        ("q a\n", ":1: 2 columns; expected `qid 0 docid grade`"),
        ("\n", "no judgements"),
    ],
)
def test_bad_qrels_say_where(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path / "qrels.txt", text)
    with pytest.raises(InputError) as caught:
        load_qrels(path)
    assert message in str(caught.value)


def test_documents_of_every_form(tmp_path: Path) -> None:
    lines = [{"_id": "a", "title": "T", "text": "body"}, {"id": "b", "contents": "c"}, {"docid": 3, "text": ""}]
    path = written(tmp_path / "corpus.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    assert list(load_documents(path)) == [Document("a", "T\nbody"), Document("b", "c"), Document("3", "")]
    packed = tmp_path / "collection.tsv.gz"
    packed.write_bytes(gzip.compress(b"1\tone\ttab\n2\ttwo\n"))
    assert list(load_documents(packed)) == [Document("1", "one\ttab"), Document("2", "two")]


def test_bad_documents_say_where(tmp_path: Path) -> None:
    path = written(tmp_path / "corpus.jsonl", '{"id": "a", "text": "x"}\n{"id": "b"}\n')
    with pytest.raises(InputError, match=r'corpus\.jsonl:2: keys \[\'id\'\]; expected "id"'):
        list(load_documents(path))
    with pytest.raises(InputError, match=r":1: not a JSON object on one line"):
        list(load_documents(written(tmp_path / "b.jsonl", "not json\n")))


@pytest.mark.parametrize("load", [load_topics, load_qrels, lambda name: list(load_documents(name))])
def test_unknown_names_get_the_nearest(load: object) -> None:
    with pytest.raises(InputError, match=r"beir/scifac: neither a file nor a data set .* beir/scifact"):
        load("beir/scifac")  # type: ignore[operator]
    with pytest.raises(InputError, match=r"missing\.tsv: no such file"):
        load("missing.tsv")  # type: ignore[operator]


def test_data_that_cannot_be_downloaded_is_unavailable(tmp_path: Path) -> None:
    code = (
        "from rnnreranker.data.topics import load_topics\n"
        "from rnnreranker.base.errors import UnavailableError\n"
        "import socket\n"
        "def refuse(*a, **k): raise socket.gaierror('closed for this test')\n"
        "socket.getaddrinfo = refuse\n"
        "for name in ('beir/fiqa/test', 'tripclick/test/head'):\n"
        "    try: load_topics(name)\n"
        "    except UnavailableError as error: print(error)\n"
    )
    environment = {**os.environ, "IR_DATASETS_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    first, second = done.stdout.splitlines()
    assert first.startswith("beir/fiqa/test: the queries are not in ")
    assert "set IR_DATASETS_HOME to a copy" in first
    assert second.startswith("tripclick/test/head: the queries need a local copy")


def test_ir_datasets_ids_and_short_names(shared: Path, tmp_path: Path) -> None:
    home = tmp_path / "ir_datasets"
    shutil.copytree(shared / "data" / "ir_datasets" / "cranfield", home / "cranfield")
    code = (
        "from rnnreranker.data.topics import load_topics\n"
        "from rnnreranker.data.qrels import load_qrels\n"
        "from rnnreranker.data.documents import load_documents\n"
        "documents = list(load_documents('cranfield'))\n"
        "print(len(load_topics('cranfield')), len(load_qrels('cranfield')), len(documents))"
    )
    environment = {**os.environ, "IR_DATASETS_HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["225", "1837", "1400"]


def test_topics_without_those_of_others(tmp_path: Path) -> None:
    """`NAME:without:OTHER`, of topics and judgements, by the ids of queries; several are named one after the other."""
    topics = written(tmp_path / "all.tsv", "q3\tthird\nq1\tfirst\nq2\tsecond\nq4\tfourth\n")
    some = written(tmp_path / "some.tsv", "q1\tanother text\nq9\tnot among them\n")
    more = written(tmp_path / "more.tsv", "q2\tsecond\n")
    judged = written(tmp_path / "qrels.txt", "q1 0 d1 1\nq2 0 d1 1\nq3 0 d1 0\nq3 0 d2 1\n")
    assert load_topics(f"{topics}:without:{some}") == {"q3": "third", "q2": "second", "q4": "fourth"}
    assert list(load_topics(f"{topics}:without:{some}:without:{more}")) == ["q3", "q4"]
    assert load_narratives(f"{topics}:without:{some}") == {}
    kept = load_qrels(f"{judged}:without:{some}:without:{more}")
    assert kept.to_dict("records") == load_qrels(judged).iloc[2:].to_dict("records")
    assert list(kept.index) == [0, 1]


def test_none_left_of_topics_is_one_line(tmp_path: Path) -> None:
    topics = written(tmp_path / "all.tsv", "q1\tfirst\n")
    judged = written(tmp_path / "qrels.txt", "q1 0 d1 1\n")
    with pytest.raises(
        InputError, match=r"all\.tsv: no query of \S+all\.tsv left without the queries of \S+; leave out"
    ):
        load_topics(f"{topics}:without:{topics}")
    with pytest.raises(InputError, match=r"no judgement of \S+qrels\.txt left without the queries of"):
        load_qrels(f"{judged}:without:{topics}")
    with pytest.raises(
        InputError, match=r"msmarco-dev-smal: neither a file nor a data set .*did you mean msmarco-dev-sma"
    ):
        load_topics(f"{topics}:without:msmarco-dev-smal")


def test_the_small_development_set_has_no_query_of_deep_learning(shared: Path) -> None:
    """The queries of TREC Deep Learning 2019 and 2020 are of MS MARCO's evaluation set, so that nothing is left out."""
    folder = shared / "data" / "ir_datasets" / "msmarco-passage"
    small, *others = (folder / name / "queries.tsv" for name in ("dev/small", "trec-dl-2019", "trec-dl-2020"))
    found = load_topics(":without:".join(map(str, [small, *others])))
    assert len(found) == 6980
    assert found == load_topics(small)
