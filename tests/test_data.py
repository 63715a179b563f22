"""Topics, qrels and documents from files, built-in names and ir_datasets ids, and what is said about bad ones."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import ir_measures
import numpy as np
import pandas
import pytest

from rnnreranker.base.errors import DataWarning, InputError
from rnnreranker.data.document import Document
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels, qrels_of
from rnnreranker.data.topics import load_topics


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_topics_from_tsv(tmp_path: Path) -> None:
    path = written(tmp_path / "topics.tsv", "qid\tquery\tnarrative\n2\tsecond query\tfinds b\n\n1\t first \n")
    assert load_topics(path) == {"2": "second query", "1": "first"}


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
        ({"1": [{"2": 1}]}, "doc_id {'2': 1} is of type dict; expected text"),
        ({"1": {"2": 2**40}}, "expected a whole number"),
        ({}, "no judgements"),
        (["1"], "'1'; expected a name, a file"),
        (None, "NoneType; expected a name, a file"),
    ],
)
def test_objects_that_are_no_qrels(given: object, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        qrels_of(given)  # type: ignore[arg-type]


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
    packed.write_bytes(gzip.compress(b"1\tone\r\n2\ttwo\n"))
    assert list(load_documents(packed)) == [Document("1", "one"), Document("2", "two")]


def test_bad_documents_say_where(tmp_path: Path) -> None:
    path = written(tmp_path / "corpus.jsonl", '{"id": "a", "text": "x"}\n{"id": "b"}\n')
    with pytest.raises(InputError, match=r'corpus\.jsonl:2: keys \[\'id\'\]; expected "id"'):
        list(load_documents(path))
    with pytest.raises(InputError, match=r":1: not JSON"):
        list(load_documents(written(tmp_path / "b.jsonl", "not json\n")))


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
New <b>par</b>agraph &sect; 5 &blank; x<BR>y
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
<DOC>
<DOCNO>LA1</DOCNO>
<HEADLINE>
<P>
Inner head
</P>
</HEADLINE>
<LEADPARA>first</LEADPARA>
<TTL>second</TTL>
<TEXT>
<TITLE>in text</TITLE>
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
ANSERINI = {  # what TrecCollection and TrecwebCollection of Anserini 1.7.1 give of them
    "FT911-1": "910514 FT 14 MAY 91 / Contigas plans east German project Bayernwerk, said & R&D <b> yesterday. "
    "1 < 2 and 3 > 2. New paragraph \u00a7 5 \u2423 x y",
    "WSJ1": "Head line 03/24/87 John Blair & Co. body",
    "LA1": "Inner head first second in text",
    "WTX001-B01-1": "SC Gov Welcome to South Carolina 2 line one two",
}
ON_ONE_LINE = """<DOC><DOCNO>a</DOCNO><TITLE>t</TITLE><TEXT>one line</TEXT></DOC>
<doc><docno>b</docno><text>two
lines</text></doc><doc><docno>c</docno><html><body>web</body></html></doc>
<DOC>
<DOCNO>d</DOCNO>
<BODY>other tag</BODY>
</DOC>
"""


def texts(path: Path | str) -> dict[str, str]:
    return {document.docid: " ".join(document.text.split()) for document in load_documents(path)}


def test_documents_of_trec_have_the_text_that_anserini_gives_them(tmp_path: Path) -> None:
    assert texts(written(tmp_path / "d.trec", FT + WEB)) == ANSERINI
    assert texts(written(tmp_path / "lower.trec", FT.lower())) == {
        docid.lower(): text.lower() for docid, text in ANSERINI.items() if docid != "WTX001-B01-1"
    }
    one_line = texts(written(tmp_path / "one.sgml", ON_ONE_LINE))
    assert one_line == {"a": "t one line", "b": "two lines", "c": "web", "d": "other tag"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FT.replace("TEXT>", "BODY>", 2).replace("R&D", "R&D" * 200), "more than half of 1 document .first: FT911-1"),
        (FT.encode().replace(b"yesterday", b"caf\xe9"), r"d\.trec: 1 line not UTF-8, whose characters are lost"),
    ],
)
def test_text_of_trec_that_is_left_out_or_lost_is_told(tmp_path: Path, text: str | bytes, said: str) -> None:
    path = tmp_path / "d.trec"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.warns(DataWarning, match=said):
        list(load_documents(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\n<DOC>\n", r":1: text outside <DOC> \('x'\)"),
        ("<DOC>\n<DOCNO>a</DOCNO>\n<DOC>\n", ":3: <DOC> inside the document of line 1"),
        ("\n<DOC>\n<TEXT>x</TEXT></DOC>", ":2: a document without <DOCNO>"),
        ("<DOC>\n<DOCNO>a</DOCNO>\nx\n", ":1: this document has no </DOC>; the file is cut off"),
        ("</DOC>\n", ":1: </DOC> before a document"),
    ],
)
def test_bad_documents_of_trec_say_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(load_documents(written(tmp_path / "d.trec", text)))


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


def of_ir_datasets(path: Path, kind: str) -> dict[str, str]:
    """The topics of a file as ir_datasets parses them."""
    from ir_datasets.formats import TrecQueries, TrecXmlQueries

    class File:
        stream = staticmethod(lambda: io.BytesIO(path.read_bytes()))

    class XmlQuery(NamedTuple):
        query_id: str
        query: str

    made = TrecXmlQueries(File, XmlQuery) if kind == "xml" else TrecQueries(File)
    return {one.query_id: " ".join(one[1].split()) for one in made.queries_iter()}


def test_topics_of_trec_are_those_of_ir_datasets(tmp_path: Path) -> None:
    xml, trec = written(tmp_path / "t.xml", XML_TOPICS), written(tmp_path / "t.txt", TREC_TOPICS)
    assert load_topics(xml) == of_ir_datasets(xml, "xml") == {"1": "coronavirus origin & more", "2": "obama"}
    assert load_topics(trec) == of_ir_datasets(trec, "trec")
    one_line = (
        "<top><num>C041</num><title>Pesticides</title><desc>d</desc></top><TOP><NUM>2</NUM><TITLE>x</TITLE></TOP>"
    )
    assert load_topics(written(tmp_path / "one.txt", one_line)) == {"C041": "Pesticides", "2": "x"}
    clinical = '<topics task="2021 TREC CT">\n<topic number="1">\nA man of 45 &amp; more,\nwho\n</topic>\n</topics>\n'
    assert load_topics(written(tmp_path / "ct.xml", clinical)) == {"1": "A man of 45 & more, who"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<top>\n<num>1\n<title> a\n<top>\n", r":4: <top> inside the topic of line 1"),
        ("<top><num>1</num></top>", r":1: a topic with \['num'\]; expected <num> and <title>"),
        ("<top>\n<num>1\n<title>a\n<title>b</top>", ":4: <title> a second time in the topic of line 1"),
        ("<top><num>1<title>a</top>\nx\n", r":2: text outside <top> \('x'\)"),
        ("<top>\n<num>1<title>a", ":1: this topic has no </top>"),
    ],
)
def test_bad_topics_of_trec_say_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_topics(written(tmp_path / "t.txt", text))


DPR = 'id\ttext\ttitle\n1\t"Aaron ( ""Ah\u00e4r\u00f4n"") is"\tAaron\n2\tplain "x"\tTwo\n'


def test_titles_and_names_of_columns(tmp_path: Path) -> None:
    """A line of names is no record, whatever the order of columns; a title stands before the text, as BEIR has it."""
    path = written(tmp_path / "psgs.tsv", DPR)
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t"))  # as DPR reads it
    assert list(load_documents(path)) == [Document(row["id"], f"{row['title']}\n{row['text']}") for row in rows]
    assert list(load_documents(path, ("text",))) == [Document(row["id"], row["text"]) for row in rows]
    colbert = written(tmp_path / "collection.tsv", "1\tone\tT1\n2\ttwo\tT2\n")
    assert list(load_documents(colbert)) == [Document("1", "T1\none"), Document("2", "T2\ntwo")]
    with pytest.warns(DataWarning, match=r"odd\.tsv:1: taken for a record, as no name of an id is in it"):
        assert len(list(load_documents(written(tmp_path / "odd.tsv", "nummer\ttext\n1\tx\n")))) == 2
    with pytest.warns(DataWarning, match=r"docs\.tsv:1: 1 column not read: url"):
        mixed = list(load_documents(written(tmp_path / "docs.tsv", "title\tDocID\turl\tbody\nT\t1\thttp\tB\n")))
    assert mixed == [Document("1", "T\nB")]
    queries = (
        "query-id\tquery",
        "QueryID\tQuery Text",
        "qid\ttext",
        "_id\ttext",
        "ID\ttitle",
        "query_id\tquestion\tnarrative",
        "topic\tquery",
    )
    for names in (*queries, '"id"\t"text"', "number\tid\ttitle"):
        row = "7\tq1\ta b" if names.startswith("number") else "q1\ta b"
        assert load_topics(written(tmp_path / "topics.tsv", f"{names}\n{row}\n")) == {"q1": "a b"}
    for names, row in {
        "query_id\tdoc_id\trelevance\titeration": "q\td\t2\t0",  # as ir_datasets export writes it
        "qid docid grade": "q d 2",
        "corpus-id\tquery-id\tscore": "d\tq\t2",
    }.items():
        qrels = load_qrels(written(tmp_path / "qrels.tsv", f"{names}\n{row}\n"))
        assert qrels.values.tolist() == [["q", "d", 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\tone\tT\n2\ttwo\n", r":2: 2 tab-separated columns; expected docid<TAB>text\[<TAB>title\], 3 columns as"),
        ("1\tone\n2\ttwo\tT\n", r":2: 3 tab-separated columns; expected docid<TAB>text\[<TAB>title\]"),
        ("D1\thttp\ttitle\tbody\n", ":1: 4 tab-separated columns; expected docid<TAB>text"),
        ("one two\n", r":1: 1 tab-separated column \(is there a blank in place of the tab\?\)"),
        ("id\tabstract\n1\tx\n", r':1: keys \[.abstract., .id.\]; expected "id"'),
        ("id\ttext\n1\tx\ty\n", ":2: 3 tab-separated columns"),
        ("id\ttext\n1\tx\nid\ttext\n", ":3: the line of names stands here a second time"),
    ],
)
def test_columns_of_other_shapes_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(load_documents(written(tmp_path / "d.tsv", text)))


def test_arrays_parquet_and_folders_are_read_as_json_lines(tmp_path: Path) -> None:
    records = [{"id": "a", "title": "T", "text": "x"}, {"id": "b", "title": None, "text": "y"}]
    expected = [Document("a", "T\nx"), Document("b", "y")]
    lines = written(tmp_path / "d.jsonl", "".join(json.dumps(one) + "\n" for one in records))
    array = written(tmp_path / "d.json", json.dumps(records, indent=1))
    pandas.DataFrame(records).to_parquet(tmp_path / "d.parquet")
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, one in enumerate(records):
        written(folder / f"{number}.json", json.dumps(one, indent=2))  # one object a file, as Pyserini takes it
    written(folder / "README.md", "read")
    for path in (lines, array, tmp_path / "d.parquet", folder):
        assert list(load_documents(path)) == expected
    written(folder / "queries.json", "{}")
    with pytest.raises(InputError, match="folder: a folder with files of json and topics or qrels; expected documents"):
        list(load_documents(folder))
    with pytest.raises(InputError, match=r"d\.json:1: not JSON .*line 2"):
        list(load_documents(written(array, '[\n{"id": "a", "text": "x"}')))
    with pytest.raises(InputError, match=r"d\.parquet: cannot be read as parquet"):
        list(load_documents(written(tmp_path / "d.parquet", "PAR1")))
    frame = pandas.DataFrame({"query-id": ["q"], "corpus-id": [7], "score": [2.0]})
    frame.to_parquet(tmp_path / "qrels.parquet")  # as BEIR's on the hub
    assert load_qrels(tmp_path / "qrels.parquet").values.tolist() == [["q", "7", 2]]
    pandas.DataFrame({"_id": [1], "text": ["what"]}).to_parquet(tmp_path / "topics.parquet")
    assert load_topics(tmp_path / "topics.parquet") == {"1": "what"}


def test_queries_with_positive_and_negative_documents(tmp_path: Path) -> None:
    """FlagEmbedding writes texts without ids, Tevatron objects with them; a document is read once."""
    flag = [{"query": "what", "pos": ["one", "two"], "neg": ["no"]}, {"query": "why", "pos": ["one"], "neg": []}]
    path = written(tmp_path / "train.jsonl", "".join(json.dumps(one) + "\n" for one in flag))
    docid_of = {document.text: document.docid for document in load_documents(path)}
    assert list(docid_of) == ["one", "two", "no"]
    assert load_topics(path) == {"1": "what", "2": "why"}
    judged = {(qid, docid): grade for qid, docid, grade in load_qrels(path).itertuples(index=False)}
    of_first = {("1", docid_of[text]): int(text != "no") for text in docid_of}
    assert judged == {**of_first, ("2", docid_of["one"]): 1}
    passages = {"positive_passages": [{"docid": "d1", "title": "T", "text": "x"}], "negative_passages": []}
    tevatron = written(tmp_path / "t.jsonl", json.dumps({"query_id": 7, "query": "what", **passages}))
    assert list(load_documents(tevatron)) == [Document("d1", "T\nx")]
    assert (load_topics(tevatron), load_qrels(tevatron).values.tolist()) == ({"7": "what"}, [["7", "d1", 1]])


@pytest.mark.parametrize("text", ['{"id": "a", "text": null}', '{"id": "a", "contents": null}'])
def test_null_is_told_from_a_missing_key(tmp_path: Path, text: str) -> None:
    with pytest.raises(
        InputError, match=r':1: "(text|contents)" is null; expected a string \("" where there is none\)'
    ):
        list(load_documents(written(tmp_path / "d.jsonl", text)))


@pytest.mark.long
def test_a_pipe_is_read_as_the_file_whatever_is_in_it(tmp_path: Path) -> None:
    """Process substitution: no name tells the format, and no one can read a pipe twice."""
    written(tmp_path / "d.jsonl", '{"id": "a", "text": "x y"}\n{"id": "b", "text": "z"}\n')
    written(tmp_path / "t.tsv", "qid\ttext\nq\tx\n")
    written(tmp_path / "q.txt", "q 0 b 1\nq 0 a 0\n")
    written(tmp_path / "r.txt", "q Q0 a 1 2.0 x\nq Q0 b 2 1.0 x\n")
    command = f"{sys.executable} -m rnnreranker."
    build = f"{command}index --parts terms --output out"
    script = f"""set -e
{build} --documents <(gzip -c d.jsonl)
{build} --documents <(gzip -c d.jsonl)
{command}search --index out --retriever bm25s --rerank none --topics <(cat t.tsv) --qrels <(cat q.txt) --measures RR
{command}evaluate <(cat r.txt) --qrels <(gzip -c q.txt) --measures RR@10"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "out: already complete, 2 documents" in done.stderr
    assert "0.5000" in done.stdout  # b is the second of the run


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
    kept = load_qrels(f"{judged}:without:{some}:without:{more}")
    assert kept.to_dict("records") == load_qrels(judged).iloc[2:].to_dict("records")
    assert list(kept.index) == [0, 1]
