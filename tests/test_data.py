"""Topics, qrels and documents from files, Python objects and ids of ir_datasets, and what is said about bad ones."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas
import pytest
from refusals import refusal

from rnnreranker.base.errors import DataWarning
from rnnreranker.data.document import Document
from rnnreranker.data.documents import GivenDocuments, load_documents, texts_by_id
from rnnreranker.data.local import files_of
from rnnreranker.data.qrels import load_qrels, qrels_of
from rnnreranker.data.topics import load_topics


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    return path


def documents(path: Path) -> list[Document]:
    return list(load_documents(path))


def judged(path: Path) -> list[list[Any]]:
    rows: list[list[Any]] = load_qrels(path).values.tolist()
    return rows


DPR = 'id\ttext\ttitle\n1\t"Aaron ( ""Ah\u00e4r\u00f4n"") is"\tAaron\n2\tplain "x"\tTwo\n'
ROW = next(csv.DictReader(DPR.splitlines(), delimiter="\t"))  # as DPR reads it
ONE = '{"id": "a", "title": "T", "text": "x"}'


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("c.tsv", "1\tone\tT1\r\n\n2\t\t\n", [Document("1", "T1\none"), Document("2", "")]),
        ("psgs.tsv", DPR, [Document("1", f"Aaron\n{ROW['text']}"), Document("2", 'Two\nplain "x"')]),
        ("d.tsv", "title\tDocID\turl\tbody\nT\t1\thttp\tB\n", [Document("1", "T\nB")]),
        (
            "d.jsonl",
            f'{ONE}\n{{"docid": 3, "contents": "", "title": null}}\n',
            [Document("a", "T\nx"), Document("3", "")],
        ),
        ("d.json", f"[\n{ONE},\n{ONE.replace('a', 'b')}]", [Document("a", "T\nx"), Document("b", "T\nx")]),
        ("o.json", ONE.replace(",", ",\n"), [Document("a", "T\nx")]),
        ("v2.jsonl", '{"pid": "p_1", "docid": "D1", "passage": "x"}', [Document("p_1", "x")]),
    ],
)
def test_documents_of_files(tmp_path: Path, name: str, text: str, found: list[Document]) -> None:
    assert documents(written(tmp_path / name, text)) == found
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert documents(packed) == found


TOPIC_NAMES = ("query-id\tquery", "QueryID\tQuery Text", "_id\ttext", "ID\ttitle", "topic\tquery", '"id"\t"text"')


@pytest.mark.parametrize(
    ("load", "name", "text", "found"),
    [
        (
            load_topics,
            "t.tsv",
            "qid\tquery\tnarrative\n2\tsecond query\tfinds b\n\n1\t first \t\n",
            {"2": "second query", "1": "first"},
        ),
        *((load_topics, "t.tsv", f"{names}\nq1\ta b\n", {"q1": "a b"}) for names in TOPIC_NAMES),
        (load_topics, "t.tsv", "number\tid\ttitle\n7\tq1\ta b\n", {"q1": "a b"}),
        (judged, "q.txt", "q 0 a 1\nq 0 b -1\n", [["q", "a", 1], ["q", "b", -1]]),
        (judged, "q.txt", "q 0 id 2\n", [["q", "id", 2]]),  # no line of names
        (judged, "q.tsv", "query-id\tcorpus-id\tscore\nq\ta\t1.0\n", [["q", "a", 1]]),
        (judged, "q.tsv", "query_id\tdoc_id\trelevance\titeration\nq\td\t2\t0\n", [["q", "d", 2]]),
        (judged, "q.txt", "qid docid grade\nq d 2\n", [["q", "d", 2]]),
        (judged, "q.tsv", "corpus-id\tquery-id\tscore\nd\tq\t2\n", [["q", "d", 2]]),
        (judged, "q.jsonl", '{"query-id": "q", "corpus-id": 7, "score": 2}', [["q", "7", 2]]),
    ],
)
def test_topics_and_qrels_of_files(tmp_path: Path, load: Any, name: str, text: str, found: object) -> None:
    assert load(written(tmp_path / name, text)) == found


def test_parquet_and_folders(tmp_path: Path) -> None:
    records = [{"id": "a", "title": "T", "text": "x"}, {"id": "b", "title": None, "text": "y"}]
    expected = [Document("a", "T\nx"), Document("b", "y")]
    pandas.DataFrame(records).to_parquet(tmp_path / "d.parquet")
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, one in zip((9, 10), records, strict=True):
        written(folder / f"{number}.json", json.dumps(one, indent=2))  # one object a file, as Pyserini takes it
    written(folder / "README.md", "read")
    assert documents(tmp_path / "d.parquet") == documents(folder) == expected
    written(folder / "queries.json", "{}")
    with refusal(r"folder: a folder of 10\.json, 9\.json, queries\.json; expected documents"):
        documents(folder)
    frame = pandas.DataFrame({"query-id": ["q"], "corpus-id": [7], "score": [2.0]})
    frame.to_parquet(tmp_path / "qrels.parquet")  # as BEIR's on the hub
    assert judged(tmp_path / "qrels.parquet") == [["q", "7", 2]]
    pandas.DataFrame({"_id": [1], "text": ["what"]}).to_parquet(tmp_path / "topics.parquet")
    assert load_topics(tmp_path / "topics.parquet") == {"1": "what"}


def test_a_first_line_that_names_no_id_is_a_record(tmp_path: Path) -> None:
    (tmp_path / "topics.tsv").write_text("q1\ttext\nq2\tmore\n")
    with pytest.warns(DataWarning, match=r"topics\.tsv:1: taken for a record, as it names no id; expected names as"):
        assert load_topics(str(tmp_path / "topics.tsv")) == {"q1": "text", "q2": "more"}


@pytest.mark.parametrize(
    ("load", "name", "text", "said"),
    [
        (load_topics, "x.tsv", "1\ta\n1\tb\n", ":2: query id 1 stands here a second time"),
        (load_topics, "x.tsv", "1\ta\nno tab here\n", ":2: 1 columns; expected id text between tabs"),
        (load_topics, "x.tsv", "1\t \n", ":1: query 1 has no text"),
        (load_topics, "x.tsv", "", "x.tsv: no topics; expected one query a line"),
        (
            judged,
            "x.txt",
            "q 0 a 1\nq 0 a 2\n",
            ":2: a has grade 2 for query q, and another before; expected one grade",
        ),
        *(
            (judged, "x.txt", f"q 0 a {one}\n", f":1: .*grade '{one}'; expected a whole")
            for one in ("no", "1e3", "1_0", "\u0661", "1.5")
        ),
        (judged, "x.txt", "q a\n", ":1: 2 columns; expected qid docid grade or qid 0 docid grade between blanks"),
        (judged, "x.txt", "\n", "x.txt: no judgements"),
        (documents, "x.jsonl", f'{ONE}\n{{"id": "b"}}\n', r':2: keys \[\'id\'\]; expected "id"'),
        (documents, "x.jsonl", '{"id": "a", "text": null}', ':1: "text" is a NoneType; expected a string'),
        (documents, "x.jsonl", '{"id": "a", "docid": "b", "text": "x"}', ":1: id and docid differ; expected one key"),
        (documents, "x.jsonl", '{"query": "what", "pos": ["one"]}', r":1: keys \['pos', 'query'\]; expected"),
        (documents, "x.jsonl", "not json\n", r":1: not JSON"),
        (documents, "x.jsonl", "5\n", ":1: a JSON int; expected an object"),
        (documents, "x.jsonl", f'{ONE}\n["id"]\n', ":2: a JSON list; expected an object"),
        (documents, "x.jsonl", f'{ONE}\n{{"id": "b", "text": "\udcff"}}\n', ":2: not UTF-8 text"),
        (documents, "x.json", f"[\n{ONE}", r":2: not JSON"),
        (documents, "x.parquet", "PAR1", r"x\.parquet: cannot be read as parquet"),
        (documents, "x.tsv", "1\tone\tT\n2\ttwo\n", ":2: 2 columns; expected id text title between tabs"),
        (documents, "x.tsv", "D1\thttp\tone\ttwo\n", ":1: 4 columns; expected id text or id text title between tabs"),
        (documents, "x.tsv", "id\tabstract\n1\tx\n", r':1: keys \[.abstract., .id.\]; expected "id"'),
        (documents, "x.tsv", "id\ttext\n1\tx\nid\ttext\n", ":3: 2 columns; expected id text"),
        (documents, "x.trec", "x\n<DOC></DOC>\n", ":2: the element that ends here has text before it"),
        (documents, "x.trec", "<DOC>\n<DOC>\n</DOC>", ":3: the element that ends here has 2 starts"),
        (documents, "x.trec", "\n<DOC>\n<TEXT>x</TEXT></DOC>", ":2: docid ''; expected one that is not empty"),
        (documents, "x.trec", "<DOC>\n<DOCNO>a</DOCNO>\nx\n", "no </doc> at the end; the file is cut off"),
        (documents, "x.trec", "</DOC>\n", ":1: the element that ends here has 0 starts"),
        (load_topics, "x.xml", "<top><num>1</num></top>", ":1: query 1 has no text"),
        (
            load_topics,
            "x.xml",
            "<top>\n<num>1\n<title>a\n<title>b</top>",
            ":1: a field of this topic stands in it twice",
        ),
        (load_topics, "x.xml", "<top><num>1</num><title>a</top>\nx\n", "at the end; the file is cut off"),
    ],
)
def test_bad_files_say_where(tmp_path: Path, load: Callable[[Path], Any], name: str, text: str, said: str) -> None:
    path = written(tmp_path / name, text)
    with refusal(said) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))


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
def test_qrels_of_objects(given: Any) -> None:
    assert qrels_of(given).to_dict("list") == FRAME.to_dict("list")


def test_qrels_of_docids_and_their_protocol() -> None:
    for docids in (["2", "3"], ("2", "3"), dict.fromkeys(["2", "3"], 1)):
        assert qrels_of({"1": docids}).to_dict("list") == FRAME.assign(relevance=1).to_dict("list")
    assert len(qrels_of({"1": {"2", "3"}})) == 2
    frame = FRAME.copy()
    frame.attrs["protocol"] = "dl"
    assert qrels_of(frame).attrs["protocol"] == "dl"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pandas.concat([FRAME, FRAME.assign(relevance=1)]), "2 has grade 1 for query 1, and another before"),
        (FRAME.assign(relevance=[1, 1.5]), "query 1, document 3: grade '1.5'; expected a whole number"),
        (FRAME.assign(relevance=[1, None]), "query 1, document 3: grade 'nan'; expected a whole number"),
        (FRAME.assign(doc_id=["2", None]), "doc_id has a "),
        (FRAME.assign(query_id=1.0), "query_id has a float; expected text"),
        (FRAME[["query_id", "relevance"]], "no column doc_id in "),
        ({"1": {"2": True}}, "query 1, document 2: grade 'True'; expected a whole number"),
        ({"1": "2"}, "{'1': '2'}: a text in place of docids; expected a name, a file"),
        ({"1": [{"2": 1}]}, "unhashable"),
        ({"1": {"2": 2**40}}, "expected a whole number"),
        ({}, "no judgements"),
        (["1"], "no column doc_id, relevance in ['1']; expected a name, a file"),
        (None, "None: 'NoneType' object is not iterable; expected a name, a file"),
    ],
)
def test_objects_that_are_no_qrels(given: Any, message: str) -> None:
    with refusal(re.escape(message)):
        qrels_of(given)


FT = """<DOC>
<DOCNO> FT911-1 </DOCNO>
<PROFILE>_AN-BEOA7AAIFT</PROFILE>
<DATE>910514
</DATE>
<HEADLINE>
FT  14 MAY 91 / Contigas plans east German
project
</HEADLINE>
<TEXT>
Bayernwerk, said &amp; R&D &lt;b&gt; yesterday. 1 < 2 and 3 > 2.
<!-- PJG 0012 -->
<P>
New <b>par</b>agraph &sect; 5 &blank; x<BR>y ?a&section=2
</P>
</TEXT>
<PUB>The Financial Times
</PUB>
</DOC>
<DOC>
<DOCNO>WSJ1</DOCNO>
<HL> Head line </HL>
<DD> 03/24/87</DD>
<SO> WALL STREET JOURNAL (J)</SO>
<LP>
 John Blair &amp; Co.
</LP>
<TEXT>
   body
</TEXT>
</DOC>
"""
WEB = """<DOC>
<DOCNO>WTX001-B01-1</DOCNO>
<DOCOLDNO>IA001-000000-B001-4</DOCOLDNO>
<DOCHDR>
http://www.lpitr.state.sc.us:80/ text/html 4112
</DOCHDR>
<!DOCTYPE html>
<html><head><title>SC Gov</title><style>p {x:y}</style><script>var a = "<p>";</script></head>
<body onload="x()"><h1>Welcome</h1><p>to <a href="x">South</a> Carolina&nbsp;2<br/>line</p><!-- hidden
<p>more --><ul><li>one<li>two</ul>
<img src=a alt="b">
</body></html>
</DOC>
"""
ANSERINI = {  # the words that TrecCollection and TrecwebCollection of Anserini 1.7.1 give of them
    "FT911-1": "910514 FT 14 MAY 91 / Contigas plans east German project Bayernwerk, said & R&D <b> yesterday. "
    "1 < 2 and 3 > 2. New paragraph \u00a7 5 \u2423 x y ?a&section=2",
    "WSJ1": "Head line 03/24/87 John Blair & Co. body",
    "WTX001-B01-1": "SC Gov Welcome to South Carolina 2 line one two",
}
ON_ONE_LINE = """<DOC><DOCNO>a</DOCNO><TITLE>t</TITLE><TEXT>one line</TEXT></DOC>
<doc><docno>b</docno><text>two
lines</text></doc><doc><docno>c</docno><html><body>web</body></html></doc>
<DOC>
<DOCNO>d</DOCNO>
<TITLE>t</TITLE>
<BODY>other tag</BODY>
</DOC>
<DOC><DOCNO>e</DOCNO><TITLE>t</TITLE><URL>http://x</URL><TEXT></TEXT></DOC>
"""


def test_documents_of_trec_have_the_words_that_anserini_gives_them(tmp_path: Path) -> None:
    def words(path: Path) -> dict[str, list[str]]:
        return {document.docid: sorted(document.text.split()) for document in load_documents(path)}

    expected = {docid: sorted(text.split()) for docid, text in ANSERINI.items()}
    assert words(written(tmp_path / "d.trec", FT + WEB)) == expected
    assert words(written(tmp_path / "lower.trec", FT.lower())).keys() == {"ft911-1", "wsj1"}
    one_line = documents(written(tmp_path / "one.sgml", ON_ONE_LINE))
    texts = ["t\none line", "two\nlines", "web", "t\nother tag", "t\n"]
    assert one_line == [Document(docid, text) for docid, text in zip("abcde", texts, strict=True)]
    (tmp_path / "d.trec").write_bytes(FT.encode().replace(b"yesterday", b"caf\xe9"))
    with pytest.warns(DataWarning, match=r"d\.trec: 1 document not UTF-8, whose characters are lost"):
        documents(tmp_path / "d.trec")


XML_TOPICS = """<?xml version="1.0" encoding="UTF-8"?>
<topics task="covid">
 <topic number="1">
    <query>coronavirus origin &amp; more</query>
    <question>what is the origin of COVID-19</question>
    <narrative>seeking information about
    the SARS-CoV-2</narrative>
 </topic>
<topic number="2" type="faceted"><query>obama</query><description> d </description><subtopic number="1" type="nav">s
</subtopic></topic>
</topics>
"""
TREC_TOPICS = """<top>

<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify <b>organizations</b>

<narr> Narrative:
A relevant
document

</top>
<top>
<num> Number: 302
<title> Poliomyelitis and
Post-Polio </title>

<desc> Description:
What?

<narr> Narrative:
None
</top>
"""


def test_topics_of_trec(tmp_path: Path) -> None:
    one_line = "<top><num>C041</num><title>Pests</title><desc>d</desc></top><TOP><NUM>2</NUM><TITLE>x</TITLE></TOP>"
    clinical = '<topics task="2021 TREC CT">\n<topic number="1">\nA man of 45 &amp; more,\nwho\n</topic>\n</topics>\n'
    for name, text, topics in (
        ("t.xml", XML_TOPICS, {"1": "coronavirus origin & more", "2": "obama"}),
        ("t.txt", TREC_TOPICS, {"301": "International Organized Crime", "302": "Poliomyelitis and Post-Polio"}),
        ("one.txt", one_line, {"C041": "Pests", "2": "x"}),
        ("ct.xml", clinical, {"1": "A man of 45 & more, who"}),
    ):
        assert load_topics(written(tmp_path / name, text)) == topics


@pytest.mark.parametrize("load", [load_topics, load_qrels, lambda name: list(load_documents(name))])
def test_unknown_names_get_the_nearest(load: Callable[[str], object]) -> None:
    for name, said in {
        "beir/scifac": r"beir/scifac: neither a file nor a data set .* beir/scifact",
        "missing.tsv": r"missing\.tsv: no such file",
        " ": "an empty name",
    }.items():
        with refusal(said):
            load(name)


def printed(code: str, home: Path) -> list[str]:
    environment = {**os.environ, "IR_DATASETS_HOME": str(home)}
    start = "from rnnreranker.data.topics import load_topics\nfrom rnnreranker.data.qrels import load_qrels\n"
    command = [sys.executable, "-c", start + code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout.splitlines()


def test_data_that_cannot_be_downloaded_is_unavailable(tmp_path: Path) -> None:
    code = (
        "from rnnreranker.base.errors import UnavailableError\n"
        "import socket\n"
        "def refuse(*a, **k): raise socket.gaierror('closed for this test')\n"
        "socket.getaddrinfo = refuse\n"
        "for name in ('beir/fiqa/test', 'tripclick/test/head'):\n"
        "    try: load_topics(name)\n"
        "    except UnavailableError as error: print(error)\n"
    )
    first, second = printed(code, tmp_path)
    assert re.match("beir/fiqa/test: the queries are not in .*; set IR_DATASETS_HOME to a copy", first)
    assert second.startswith("tripclick/test/head: the queries need a local copy")


def test_ir_datasets_ids_and_short_names(shared: Path, tmp_path: Path) -> None:
    shutil.copytree(shared / "data" / "ir_datasets" / "cranfield", tmp_path / "cranfield")
    code = (
        "from rnnreranker.data.documents import load_documents, texts_by_id\n"
        "documents = {one.docid: one.text for one in load_documents('cranfield')}\n"
        "print(len(load_topics('cranfield')), len(load_qrels('cranfield')), len(documents))\n"
        "print(dict(texts_by_id('cranfield')) == documents)\n"
        "from ir_datasets import load\n"
        "first, alone = next(load('cranfield').docs_iter()), next(load_documents('cranfield', ('text',)))\n"
        "print([documents[first.doc_id], alone.text] == [first.default_text(), first.text])"
    )
    assert printed(code, tmp_path) == ["225 1837 1400", "True", "True"]


def test_topics_without_those_of_others(tmp_path: Path) -> None:
    """`NAME:without:OTHER`, of topics and judgements, by the ids of queries; several are named one after the other."""
    topics = written(tmp_path / "all.tsv", "q3\tthird\nq1\tfirst\nq2\tsecond\nq4\tfourth\n")
    some = written(tmp_path / "some.tsv", "q1\tanother text\nq9\tnot among them\n")
    more = written(tmp_path / "more.tsv", "q2\tsecond\n")
    qrels = written(tmp_path / "qrels.txt", "q1 0 d1 1\nq2 0 d1 1\nq3 0 d1 0\nq3 0 d2 1\n")
    assert load_topics(f"{topics}:without:{some}") == {"q3": "third", "q2": "second", "q4": "fourth"}
    assert list(load_topics(f"{topics}:without:{some}:without:{more}")) == ["q3", "q4"]
    kept = load_qrels(f"{qrels}:without:{some}:without:{more}")
    assert kept.to_dict("records") == load_qrels(qrels).iloc[2:].to_dict("records")
    assert list(kept.index) == [0, 1]
    for load, name in ((load_topics, some), (load_qrels, qrels)):
        with refusal(r"no (topics|judgements)"):
            load(f"{name}:without:{name if load is load_topics else topics}")


def test_built_in_names_go_before_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pydoc").mkdir()
    written(tmp_path / "pydoc" / "corpus.jsonl", '{"_id": "a", "text": "x"}\n')
    assert files_of("pydoc", "documents") == []


def test_backups_are_no_judgements_and_a_docid_has_one_text(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    for name, docid in (("test.tsv", "d1"), ("test.tsv.bak", "old"), ("test.v1.tsv", "older")):
        written(tmp_path / "qrels" / name, f"query-id\tcorpus-id\tscore\nq\t{docid}\t1\n")
    assert judged(tmp_path) == [["q", "d1", 1]]
    twice = written(tmp_path / "d.jsonl", '{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n')
    with refusal(r"d\.jsonl:2: docid a a second time"):
        texts_by_id(str(twice))
    given = GivenDocuments.of({"a": {"id": "b", "text": "x"}})
    assert [document.docid for document in given.documents] == ["a"]
