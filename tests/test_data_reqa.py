"""Sentences, and sentence retrieval made from reading-comprehension files, against sets worked out by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refusal

from rnnreranker.base.errors import UnavailableError
from rnnreranker.base.files import cache_home
from rnnreranker.data import reqa
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.reqa import Paragraph, paragraph_files, read, sentence_spans
from rnnreranker.data.topics import load_topics


@pytest.mark.parametrize(
    "sentences",
    [
        ["It rained.", "We stayed!", "Why?", '"Go," he said.'],
        ["Dr. J. R. Hale met Mr. Oda in the U.S. Senate.", "No. 5 won (c. 1455).", "It was 3.5 m. long."],
        ['He said: "Yes!"', '"No," she said.', "He said no.", "Then he left."],
        ["A list… of words.", "(A remark.)", "80 people came."],
        ["lower case. after a stop", "An end."],
    ],
)
def test_english_sentences(sentences: list[str]) -> None:
    glue = "\n\n" if sentences[0].startswith("lower") else " "
    text = glue.join(sentences)
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["他来了。", "真的吗？！", "「是的。」", "他说；", "然后走了"],
        ["看《变变！》的人（；）很多。", '他问："谁？"', '"我。"'],
        ["第一行", "第二行。"],
    ],
)
def test_chinese_sentences(sentences: list[str]) -> None:
    text = ("\n" if sentences[0] == "第一行" else "").join(sentences)
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences


TEXT = "Ada wrote it. It ran in 1843. Few read it."


def squad(**changes: Any) -> dict[str, Any]:
    """Two paragraphs and four questions, one of them with an answer that is not in the text."""
    questions = [
        {"id": "q1", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}] * 3},
        {"id": "q2", "question": "When?", "answers": [{"text": "1843", "answer_start": 20}]},  # four letters off
        {"id": "q3", "question": "What?", "answers": [{"text": "it. It ran", "answer_start": 10}]},
        {"id": "q4", "question": "Lost?", "answers": [{"text": "Babbage", "answer_start": 0}]},
    ]
    paragraphs = [{"context": TEXT, "qas": questions}, {"context": "No questions here.", "qas": []}]
    return {"version": "1.1", "data": [{"title": "Notes", "paragraphs": paragraphs}], **changes}


SENTENCES = {
    "p0#s0": "Ada wrote it.",
    "p0#s1": "It ran in 1843.",
    "p0#s2": "Few read it.",
    "p1#s0": "No questions here.",
}


def test_squad_files_become_a_collection(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(squad()))
    for name in (str(reqa.made_folder(path)), f"reqa:{path}"):
        assert {one.docid: one.text for one in load_documents(name)} == SENTENCES
        assert load_topics(name) == {"q1": "Who?", "q2": "When?", "q3": "What?"}
        judged = load_qrels(name).groupby("query_id")["doc_id"].apply(list).to_dict()
        assert judged == {"q1": ["p0#s0"], "q2": ["p0#s1"], "q3": ["p0#s0", "p0#s1"]}
    folder = reqa.made_folder(path)
    path.write_text(json.dumps(squad(version="1.2")))
    assert reqa.made_folder(path) != folder


def test_names_of_reqa_sets_need_their_files() -> None:
    for name in ("reqa-squad", "reqa-nq", "reqa-cmrc", "reqa-drcd"):
        where = cache_home() / "data" / name
        with pytest.raises(UnavailableError, match=f"^{name}: no folder {where}; put .*https://"):
            load_topics(name)
        where.mkdir(parents=True)
        (where / "dev-v1.1.json.gz").write_bytes(gzip.compress(json.dumps(squad()).encode()))
        assert load_topics(name) == {"q1": "Who?", "q2": "When?", "q3": "What?"}
        assert {one.docid: one.text for one in load_documents(name)} == SENTENCES


CMRC = [
    {
        "context_id": "TRAIN_1",
        "title": "雨",
        "context_text": "下雨了。我们走吧。",
        "qas": [{"query_id": "TRAIN_1_QUERY_0", "query_text": "谁走？", "answers": ["我们", "我们走"]}],
    }
]
DRCD = squad()
DRCD["data"][0]["paragraphs"] = [{"id": "1001-1", "context": TEXT, "qas": []}]
SPANS = [{"text": "1843", "char_spans": [[24, 27]], "token_spans": [[7, 7]]}]
MRQA = {"context": TEXT, "qas": [{"qid": "n1", "id": "x", "question": "when", "detected_answers": SPANS}]}


@pytest.mark.parametrize(
    ("name", "content", "found", "relevant"),
    [
        (
            "cmrc.json",
            [CMRC],
            ("TRAIN_1", "雨", "下雨了。我们走吧。", [("TRAIN_1_QUERY_0", "谁走？", [(4, 6), (4, 7)])]),
            {"TRAIN_1_QUERY_0": ["TRAIN_1#s1"]},
        ),
        ("drcd.json", [DRCD], ("1001-1", "Notes", TEXT, []), {}),
        (
            "mrqa.jsonl",
            [{"header": {"dataset": "NaturalQuestionsShort"}}, MRQA],
            ("p0", "", TEXT, [("n1", "when", [(24, 28)])]),
            {"n1": ["p0#s1"]},
        ),
    ],
)
def test_the_other_formats(tmp_path: Path, name: str, content: list[Any], found: tuple[Any], relevant: Any) -> None:
    [paragraph] = paragraphs_of(tmp_path / name, "\n".join(map(json.dumps, content)))
    assert paragraph[1:] == found
    assert {qid: docids for qid, (_, docids) in reqa.sentence_set([paragraph])[1].items()} == relevant


def paragraphs_of(path: Path, content: str) -> list[Paragraph]:
    path.write_text(content, encoding="utf-8")
    return list(read([path]))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", r"a\.json:1: not JSON"),
        ("a.json", "{}", r'a\.json: no list "data" of articles'),
        (
            "a.json",
            '{"data": [{"title": "x"}]}',
            r"a\.json: article 0: KeyError 'context'; expected the format of SQ",
        ),
        (
            "a.jsonl",
            '{"header": 1}\n{"text": "x"}\n',
            r"a\.jsonl:2: KeyError 'context'; expected the format of SQuAD, DRCD, CMRC or MRQA",
        ),
        ("a.jsonl", "[1]\n", r"a\.jsonl:1: a JSON list; expected an object"),
        (
            "a.json",
            '{"data": [{"paragraphs": [{"context": 1, "qas": []}]}]}',
            r"TypeError sequence item 1: expected str instance, int found",
        ),
        (
            "a.json",
            '[{"paragraphs": [{"context": "a", "qas": [{"id": 1, "question": ["x"], "answers": []}]}]}]',
            r"a\.json: article 0: TypeError sequence item 2: expected str instance, list found",
        ),
    ],
)
def test_bad_files_say_where(tmp_path: Path, name: str, content: str, message: str) -> None:
    with refusal(message):
        paragraphs_of(tmp_path / name, content)


def test_files_that_no_set_can_be_made_of(tmp_path: Path) -> None:
    passages = tmp_path / "passages"
    passages.mkdir()
    (tmp_path / "a.json").write_text(json.dumps({"data": []}))
    for path, said in {
        tmp_path / "nothing": "no such file; expected one in the format of SQuAD",
        tmp_path / "a.json": "none of 0 questions has an answer in its paragraph",
    }.items():
        with refusal(said):
            load_topics(f"reqa:{path}")
    with refusal(r"no \.json or \.jsonl file"):
        paragraph_files(passages)


# (documents made here, given; questions; of those, questions with exactly the given sentence). What differs: the given
# English sentences also end after initials and abbreviations, the Chinese ones after `;` in markup and inside titles
# and brackets; here every marked answer counts, there the first.
GIVEN = {
    "xquad-en": (1172, 1226, 1190, 1130),
    "cmrc2018-dev": (10592, 10671, 3219, 3131),
    "drcd-dev": (10573, 10579, 3524, 3392),
}


@pytest.mark.parametrize("name", GIVEN)
def test_made_sets_against_the_given_ones(shared: Path, name: str, tmp_path: Path) -> None:
    folder = shared / "data" / "beir" / name
    passage_of = dict(zip(*load_qrels(folder)[["query_id", "doc_id"]].to_numpy().T, strict=True))
    asked: dict[str, list[Any]] = {}
    for line in (folder / "queries.jsonl").read_text().splitlines():
        query = json.loads(line)
        its = {"id": query["_id"], "question": query["text"], "answers": query["metadata"]["answers"]}
        asked.setdefault(passage_of[query["_id"]], []).append(its)
    passages = map(json.loads, (folder / "corpus.jsonl").read_text().splitlines())
    articles = [
        {"title": one["title"], "paragraphs": [{"context": one["text"], "qas": asked.get(one["_id"], [])}]}
        for one in passages
    ]
    (tmp_path / "squad.json").write_text(json.dumps(articles))
    made, questions = reqa.sentence_set(read([tmp_path / "squad.json"]))
    given = folder.with_name(f"{name}-reqa")
    texts = {document.docid: document.text for document in load_documents(given)}
    relevant = {row.query_id: texts[row.doc_id] for row in load_qrels(given).itertuples()}
    ours = {one["_id"]: f"{one['metadata']['title']}\n{one['text']}".lstrip() for one in made}
    same = sum([ours[docid] for docid in questions[qid][1]] == [text] for qid, text in relevant.items())
    assert (len(made), len(texts), len(questions), same) == GIVEN[name]
    assert {qid: text for qid, (text, docids) in questions.items() if docids} == load_topics(given)
