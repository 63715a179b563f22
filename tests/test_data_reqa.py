"""Sentences, and sentence retrieval made from reading-comprehension files, against sets worked out by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.base.files import cache_home
from rnnreranker.data import reqa
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.reading_files import Paragraph, Question, read
from rnnreranker.data.reqa import sentence_spans
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


RELEVANT = {"q1": ["p0#s0"], "q2": ["p0#s1"], "q3": ["p0#s0", "p0#s1"]}


def test_squad_files_become_a_collection(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(squad()))
    folder = reqa.made_folder(path)
    assert [(d.docid, d.text) for d in load_documents(folder)] == [
        ("p0#s0", "Ada wrote it."),
        ("p0#s1", "It ran in 1843."),
        ("p0#s2", "Few read it."),
        ("p1#s0", "No questions here."),
    ]
    assert load_topics(folder) == {"q1": "Who?", "q2": "When?", "q3": "What?"}
    judged = load_qrels(folder).groupby("query_id")["doc_id"].apply(list).to_dict()
    assert judged == RELEVANT
    made = json.loads((folder / "made.json").read_text())
    assert made == {"files": ["dev.json"], "rules": 2, "documents": 4, "topics": 3, "dropped": 1}
    assert reqa.made_folder(path) == folder
    assert load_topics(f"reqa:{path}") == load_topics(folder)
    assert load_qrels(f"reqa:{path}").equals(load_qrels(folder))
    path.write_text(json.dumps(squad(version="1.2")))
    assert reqa.made_folder(path) != folder


def test_names_of_reqa_sets_need_their_files(tmp_path: Path) -> None:
    for name in ("reqa-squad", "reqa-nq", "reqa-cmrc", "reqa-drcd"):
        with pytest.raises(UnavailableError) as caught:
            load_topics(name)
        where = cache_home() / "data" / name
        assert str(caught.value).startswith(f"{name}: no files in {where}; download ")
        assert "https://" in str(caught.value)
    where = cache_home() / "data" / "reqa-squad"
    where.mkdir(parents=True)
    (where / "dev-v1.1.json.gz").write_bytes(gzip.compress(json.dumps(squad()).encode()))
    assert load_topics("reqa-squad") == {"q1": "Who?", "q2": "When?", "q3": "What?"}
    assert len(load_qrels("reqa-squad")) == 4
    assert sum(1 for _ in load_documents("reqa-squad")) == 4


def paragraphs_of(path: Path, content: str) -> list[Paragraph]:
    path.write_text(content, encoding="utf-8")
    return list(read(path))


def test_the_other_formats(tmp_path: Path) -> None:
    cmrc = [
        {
            "context_id": "TRAIN_1",
            "title": "雨",
            "context_text": "下雨了。我们走吧。",
            "qas": [{"query_id": "TRAIN_1_QUERY_0", "query_text": "谁走？", "answers": ["我们", "我们走"]}],
        }
    ]
    found = paragraphs_of(tmp_path / "cmrc.json", json.dumps(cmrc))
    asked = Question("TRAIN_1_QUERY_0", "谁走？", [(4, 6), (4, 7)])
    assert [(p.id, p.title, p.questions) for p in found] == [("TRAIN_1", "雨", [asked])]
    assert reqa.sentence_set(found).qrels == {"TRAIN_1_QUERY_0": ["TRAIN_1#s1"]}

    drcd = squad()
    drcd["data"][0]["paragraphs"][0]["id"] = "1001-1"
    assert [p.id for p in paragraphs_of(tmp_path / "drcd.json", json.dumps(drcd))] == ["1001-1", "p1"]

    answers = [{"text": "1843", "char_spans": [[24, 27]], "token_spans": [[7, 7]]}]
    mrqa = {"context": TEXT, "qas": [{"qid": "n1", "question": "when", "detected_answers": answers}]}
    lines = json.dumps({"header": {"dataset": "NaturalQuestionsShort"}}) + "\n" + json.dumps(mrqa) + "\n"
    found = paragraphs_of(tmp_path / "nq.jsonl", lines)
    assert [(p.id, p.text, p.questions) for p in found] == [("p0", TEXT, [Question("n1", "when", [(24, 28)])])]
    assert reqa.sentence_set(found).qrels == {"n1": ["p0#s1"]}


def test_natural_questions_lose_their_tags(tmp_path: Path) -> None:
    record = {
        "example_id": 77,
        "question_text": "when did it run",
        "document_text": "<H1> Notes </H1> <P> Ada wrote it . It ran in <B> 1843 </B> . </P> More",
        "annotations": [
            {
                "long_answer": {"start_token": 3, "end_token": 16},
                "short_answers": [{"start_token": 11, "end_token": 14}],
            }
        ],
    }
    without = {**record, "example_id": 78, "annotations": [{**record["annotations"][0], "short_answers": []}]}
    found = paragraphs_of(tmp_path / "nq.jsonl", json.dumps(record) + "\n" + json.dumps(without) + "\n")
    assert [(p.text, p.questions) for p in found] == [
        ("Ada wrote it . It ran in 1843 .", [Question("77", "when did it run", [(25, 29)])])
    ]
    made = reqa.sentence_set(found)
    assert [sentence["text"] for sentence in made.documents] == ["Ada wrote it .", "It ran in 1843 ."]
    assert made.qrels == {"77": ["p0#s1"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", r"a\.json:1: not JSON"),
        ("a.json", "{}", r'a\.json: no list "data" of articles'),
        (
            "a.json",
            '{"data": [{"title": "x"}]}',
            r"a\.json: article 0: KeyError 'paragraphs'; expected the format of SQ",
        ),
        ("a.jsonl", '{"header": 1}\n{"text": "x"}\n', r"a\.jsonl:2: KeyError 'qas'; expected a line of MRQA"),
        ("a.jsonl", "[1]\n", r"a\.jsonl:1: a JSON list; expected an object"),
        ("a.json", '{"data": [{"paragraphs": [{"context": 1, "qas": []}]}]}', r"paragraph is a int, not a string"),
        ("a.jsonl", '{"document_text": "a", "annotations": [{}]}', r"a\.jsonl:1: KeyError 'long_answer'; expected a l"),
    ],
)
def test_bad_files_say_where(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        paragraphs_of(tmp_path / name, content)
    with pytest.raises(InputError, match=r"no \.json or \.jsonl file"):
        list(read(tmp_path / "nothing"))


# (documents made here, given; questions; of those, questions with exactly the given sentence). What differs: the given
# English sentences also end after initials and abbreviations, the Chinese ones after `;` in markup and inside titles
# and brackets; here every marked answer counts, there the first.
GIVEN = {
    "xquad-en": (1172, 1226, 1190, 1130),
    "cmrc2018-dev": (10592, 10671, 3219, 3131),
    "drcd-dev": (10573, 10579, 3524, 3392),
}


@pytest.mark.parametrize("name", GIVEN)
def test_made_sets_against_the_given_ones(shared: Path, name: str) -> None:
    made = reqa.sentence_set(read(shared / "data" / "beir" / name))
    given = shared / "data" / "beir" / f"{name}-reqa"
    texts = {document.docid: document.text for document in load_documents(given)}
    relevant = {row.query_id: texts[row.doc_id] for row in load_qrels(given).itertuples()}
    ours = {one["_id"]: f"{one['metadata']['title']}\n{one['text']}".lstrip() for one in made.documents}
    same = sum([ours[docid] for docid in made.qrels[qid]] == [text] for qid, text in relevant.items())
    assert (len(made.documents), len(texts), len(made.topics), same) == GIVEN[name]
    assert made.topics == load_topics(given)
    assert made.dropped == []
