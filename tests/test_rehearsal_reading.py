"""Miniatures of reading comprehension, of folders in BEIR layout, SciFact and Cranfield, by names that specs have."""

import re

import pytest

from rnnreranker.data import reading_files
from rnnreranker.regress.plans.plan import make_plan
from rnnreranker.regress.rehearsal.datasets.families import FAMILIES, write_datasets
from rnnreranker.regress.rehearsal.datasets.paragraphs import written
from rnnreranker.regress.rehearsal.needs import needs_of_plan
from rnnreranker.regress.rehearsal.source import Source
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.spec import specs_folder
from tests.loaded_apart import loaded

pytest.importorskip("ir_datasets")
READING = ("squad", "nq", "cmrc", "drcd")
KEPT = ("nq-utd", "squad-v1.1-train-5pct-tokenised", "xquad-en", "xquad-en-reqa", "cmrc2018-dev-reqa", "drcd-dev-reqa")


@pytest.fixture(scope="module")
def source():
    return Source.of(documents=200, topics=8)


@pytest.fixture(scope="module")
def read(source, tmp_path_factory):
    """What all these names hold, loaded once."""
    folder = tmp_path_factory.mktemp("datasets")
    reqa = [f"reqa-{name}" for name in READING]
    parts = [
        f"{name}:{setting}-1-{part}"
        for name in reqa
        for setting in ("cold", "standard")
        for part in ("train", "validation", "test")
    ]
    kept = [f"collections/{name}" for name in KEPT]
    judged = [*reqa, *parts, *kept, "beir/scifact/test", "beir/scifact/train", "cranfield"]
    variables = write_datasets(source, folder, judged)
    variables["RNNRERANKER_HOME"] = str(folder / "home")
    documents = [*reqa, *kept, "beir/scifact/test", "cranfield"]
    asked = [
        *(f"documents {name}" for name in documents),
        *(f"{kind} {name}" for name in judged for kind in ("topics", "qrels")),
    ]
    return folder, judged, loaded(variables, *asked)


def test_every_name_has_topics_whose_judgements_are_of_its_documents(read):
    _, judged, said = read
    for name in judged:
        documents = said.get(name) or said.get(name.partition(":")[0]) or said["beir/scifact/test"]
        docids = {docid for docid, _ in documents}
        assert len(docids) >= 100, name
        assert {docid for _, docid, _ in said[f"qrels {name}"]} <= docids, name
        assert {qid for qid, _, grade in said[f"qrels {name}"] if grade > 0} == set(said[f"topics {name}"]), name


def test_of_a_reading_set_sentences_are_many_and_parts_have_no_question_in_common(read):
    _, _, said = read
    for name in READING:
        every = set(said[f"topics reqa-{name}"])
        parts = [set(said[f"topics reqa-{name}:cold-1-{part}"]) for part in ("train", "validation", "test")]
        assert set().union(*parts) == every
        assert sum(map(len, parts)) == len(every) > 40
        assert len(said[f"reqa-{name}"]) > 300 or name == "nq"
        assert all(re.search(r"#s\d+$", docid) for docid, _ in said[f"reqa-{name}"])


def test_chinese_sets_are_chinese_and_a_word_is_always_written_the_same(read):
    _, _, said = read
    for name in ("reqa-cmrc", "reqa-drcd", "collections/cmrc2018-dev-reqa"):
        assert all(re.search("[\u4e00-\u9fff]", text) for _, text in said[name][:20])
        assert all(re.search("[\u4e00-\u9fff]", text) for text in said[f"topics {name}"].values())
    assert written("a list", "zh") in written("Return a list of names.", "zh")
    assert written("Return a list.", "en") == "Return a list."


def test_files_have_the_names_and_the_questions_of_the_originals(read):
    folder, _, _ = read
    names = {path.name for path in (folder / "collections").rglob("*") if path.is_file()}
    assert {"train-v1.1.json", "dev-v1.1.json", "simplified-nq-train.jsonl.gz", "cmrc2018_train.json"} < names
    for name in READING:
        asked = [len(one.questions) for one in reading_files.read(folder / "collections" / f"reqa-{name}")]
        assert sum(asked) > 100
    answers = [
        paragraph.text[slice(*question.answers[0])]
        for paragraph in reading_files.read(folder / "collections" / "xquad-en")
        for question in paragraph.questions
    ]
    assert all(len(answer.split()) == 3 for answer in answers)


def test_grades_are_those_of_each_collection(read):
    _, _, said = read
    assert {grade for _, _, grade in said["qrels collections/nq-utd"]} == {0, 1, 2}
    assert {grade for _, _, grade in said["qrels cranfield"]} == {-1, 1, 2, 4}
    assert {grade for _, _, grade in said["qrels beir/scifact/train"]} == {1}
    assert not set(said["topics beir/scifact/train"]) & set(said["topics beir/scifact/test"])


def test_every_data_set_that_a_spec_reads_has_a_miniature():
    for path in sorted(specs_folder().glob("*.yaml")):
        for name in needs_of_plan(make_plan(read_spec(path))).datasets:
            assert any(family.holds(name) for family in FAMILIES), f"{path.name}: {name}"
