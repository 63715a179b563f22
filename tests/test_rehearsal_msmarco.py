"""Miniatures of MS MARCO, opened by ir_datasets and by this package's own loaders in a process of their own."""

import json
import os
import subprocess
import sys

import pytest

from rnnreranker.base.errors import InputError
from rnnreranker.regress.rehearsal.datasets.families import documents_of, write_datasets
from rnnreranker.regress.rehearsal.source import Source

pytest.importorskip("ir_datasets")
LOADS = """
import json, sys
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics
said = {}
for name in sys.argv[1:]:
    kind, _, name = name.partition(" ")
    if kind == "documents":
        said[name] = [[one.docid, one.text] for one in load_documents(name)]
    elif kind == "topics":
        said[kind + " " + name] = load_topics(name)
    elif kind == "qrels":
        said[kind + " " + name] = [[q, d, int(g)] for q, d, g in load_qrels(name).itertuples(index=False)]
    else:
        import ir_datasets
        said[name] = [list(one) for one in getattr(ir_datasets.load(name), kind)()]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def source():
    return Source.of(documents=300, topics=12)


def loaded(variables, *asked):
    done = subprocess.run(
        [sys.executable, "-c", LOADS, *asked],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


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
    triples = said["msmarco-passage/train"]
    relevant = {(qid, docid) for qid, docid, _ in said["qrels msmarco-passage/train/judged"]}
    assert all((qid, good) in relevant and (qid, bad) not in relevant for qid, good, bad in triples)
    assert triples == said["msmarco-passage/train/triples-v2"]
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
