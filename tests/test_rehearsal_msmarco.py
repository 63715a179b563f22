"""Miniatures of MS MARCO, opened by ir_datasets and by this package's own loaders in a process of their own."""

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.regress.rehearsal.datasets.families import documents_of, write_datasets
from rnnreranker.regress.rehearsal.datasets.msmarco import sets_of
from rnnreranker.regress.rehearsal.source import Source
from tests.loaded_apart import loaded

pytest.importorskip("ir_datasets")


@pytest.fixture(scope="module")
def source():
    return Source.of(documents=300, topics=12)


def test_the_first_version_is_read_where_ir_datasets_keeps_it(source, tmp_path):
    variables = write_datasets(source, tmp_path, ["msmarco-passage/train/judged", "msmarco-passage"])
    held_out = "msmarco-passage/dev/judged:without:msmarco-dev-small:without:dl19:without:dl20"
    sets = ("msmarco-passage/train/judged", "msmarco-passage/dev/judged", "msmarco-passage/dev/small", "dl19", "dl20")
    said = loaded(
        variables,
        "documents msmarco-passage",
        *(f"topics {name}" for name in (*sets, held_out)),
        *(f"qrels {name}" for name in sets),
        "docpairs_iter msmarco-passage/train",
        "docpairs_iter msmarco-passage/train/triples-v2",
    )
    passages = said["msmarco-passage"]
    assert passages == [[one.docid, one.text] for one in documents_of(source, "msmarco-passage")]
    assert len(passages) == 300
    for name in sets:
        asked = {qid for qid, _, _ in said[f"qrels {name}"]}
        assert asked == set(said[f"topics {name}"]), name
        assert {docid for _, docid, _ in said[f"qrels {name}"]} <= {docid for docid, _ in passages}
    assert len(said["topics dl19"]) == len(said["topics dl20"]) == 6
    assert {grade for _, _, grade in said["qrels dl19"]} == {0, 1, 2, 3}
    assert {grade for _, _, grade in said["qrels msmarco-passage/train/judged"]} == {1}
    validated = set(said[f"topics {held_out}"])
    assert validated
    assert not validated & set(said["topics msmarco-passage/dev/small"])
    assert not set(said["topics msmarco-passage/train/judged"]) & set(said["topics msmarco-passage/dev/judged"])
    triples = said["docpairs_iter msmarco-passage/train"]
    relevant = {(qid, docid) for qid, docid, _ in said["qrels msmarco-passage/train/judged"]}
    assert all((qid, good) in relevant and (qid, bad) not in relevant for qid, good, bad in triples)
    assert triples == said["docpairs_iter msmarco-passage/train/triples-v2"]
    assert {qid for qid, _, _ in triples} == set(said["topics msmarco-passage/train/judged"])


def test_what_is_there_stays_and_the_same_source_gives_the_same_bytes(source, tmp_path):
    write_datasets(source, tmp_path / "a", ["msmarco-passage"])
    archive = tmp_path / "a/ir_datasets/msmarco-passage/collectionandqueries.tar.gz"
    before = archive.read_bytes()
    (tmp_path / "a/ir_datasets/msmarco-passage/dev/qrels").write_text("mine")
    write_datasets(source, tmp_path / "a", ["msmarco-passage"])
    write_datasets(source, tmp_path / "b", ["msmarco-passage"])
    assert (tmp_path / "a/ir_datasets/msmarco-passage/dev/qrels").read_text() == "mine"
    assert (tmp_path / "b/ir_datasets/msmarco-passage/collectionandqueries.tar.gz").read_bytes() == before


def test_a_name_of_no_family_is_refused(source, tmp_path):
    with pytest.raises(InputError, match="wapo: no miniature of this data set"):
        write_datasets(source, tmp_path, ["wapo"])


def test_the_second_version_is_read_in_its_bundles_and_says_the_document_of_a_passage(source, tmp_path):
    variables = write_datasets(
        source, tmp_path, ["msmarco-passage-v2/train", "msmarco-document-v2/trec-dl-2021/judged"]
    )
    sets = ["msmarco-passage-v2/train", "msmarco-v2-dev1", "msmarco-v2-dev2", "dl21-passage", "dl21-document"]
    said = loaded(
        variables,
        "documents msmarco-passage-v2",
        "documents msmarco-document-v2",
        *(f"topics {name}" for name in sets),
        *(f"qrels {name}" for name in sets),
        "stored msmarco-passage-v2",
        "docs_iter msmarco-passage-v2",
    )
    passages = {docid for docid, _ in said["msmarco-passage-v2"]}
    documents = {docid for docid, _ in said["msmarco-document-v2"]}
    for name in ("msmarco-passage-v2", "msmarco-document-v2"):
        assert said[name] == [[one.docid, one.text] for one in documents_of(source, name)]
    assert len(passages) == 300
    assert len(documents) == 100
    assert said["stored msmarco-passage-v2"].keys() == passages
    assert set(said["stored msmarco-passage-v2"].values()) == documents
    assert [one[0] for one in said["docs_iter msmarco-passage-v2"]] == [
        docid for docid, _ in said["msmarco-passage-v2"]
    ]
    for name in sets:
        asked = set(said[f"topics {name}"])
        assert {qid for qid, _, _ in said[f"qrels {name}"]} <= asked
        assert {docid for _, docid, _ in said[f"qrels {name}"]} <= (documents if "document" in name else passages)
    assert {grade for _, _, grade in said["qrels dl21-document"]} == {0, 1, 2, 3}


def test_sets_of_queries_overlap_as_in_the_originals(source):
    sets = sets_of(source)
    dev = {one.qid for one in sets.dev}
    assert {one.qid for one in sets.dev1} < {one.qid for one in sets.dev_small} < dev
    assert {one.qid for one in sets.dev2} < dev - {one.qid for one in sets.dev_small}
    apart = [{one.qid for one in asked} for asked in (sets.train, sets.dev, sets.dl19, sets.dl20, sets.dl21)]
    assert len(set().union(*apart)) == sum(map(len, apart))
