"""Folders in BEIR layout as documents, topics and qrels, by path and from the commands; short names of MS MARCO."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.data.documents import load_documents
from rnnreranker.data.irds import SHORT_NAMES, load
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": "d1", "title": "A", "text": "one"}, {"_id": "d2", "title": "", "text": "two"}]
    queries = [{"_id": "q1", "text": "first"}, {"_id": "q2", "text": "second"}, {"_id": "q3", "text": "unjudged"}]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in corpus))
    (folder / "queries.jsonl.gz").write_bytes(gzip.compress("\n".join(json.dumps(line) for line in queries).encode()))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td1\t2\n")
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t1\n")
    return folder


def test_a_folder_is_its_test_split_or_the_named_one(beir: Path) -> None:
    assert [(d.docid, d.text) for d in load_documents(beir)] == [("d1", "A\none"), ("d2", "two")]
    assert load_topics(beir) == {"q2": "second"}
    assert load_topics(f"{beir}:dev") == {"q1": "first"}
    assert load_qrels(beir).values.tolist() == [["q2", "d1", 2]]
    assert load_qrels(f"{beir}:dev").values.tolist() == [["q1", "d2", 1]]


@pytest.mark.parametrize("judged", ["", "query-id\tcorpus-id\tscore\n", "query-id\tcorpus-id\tscore\nq9\td1\t2\n"])
def test_topics_of_a_folder_name_the_qrels_that_judge_none(beir: Path, judged: str) -> None:
    (beir / "qrels" / "test.tsv").write_text(judged)
    with pytest.raises(InputError, match=r"qrels/test\.tsv: judges none of the 3 queries of .*\(first: q1\)"):
        load_topics(beir)


def test_a_folder_among_ones_own_collections(beir: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = home / "data" / "mine"
    with pytest.raises(UnavailableError, match=rf"collections/mine: no folder {where}; .* RNNRERANKER_COLLECTIONS"):
        load_topics("collections/mine")
    monkeypatch.setenv("RNNRERANKER_COLLECTIONS", str(beir.parent))
    assert load_topics("collections/mine") == {"q2": "second"}
    assert load_topics("collections/mine:dev") == {"q1": "first"}
    assert [document.docid for document in load_documents("collections/mine")] == ["d1", "d2"]
    assert load_qrels("collections/mine").values.tolist() == [["q2", "d1", 2]]


def test_folders_that_lack_something_say_what(beir: Path) -> None:
    with pytest.raises(InputError, match=r":train: no qrels/train\.tsv; splits here: dev, test"):
        load_qrels(f"{beir}:train")
    (beir / "qrels" / "test.tsv").rename(beir / "qrels" / "train.tsv")
    with pytest.raises(InputError, match=r"splits dev, train and no test; name one, as .*mine:dev"):
        load_topics(beir)
    (beir / "qrels" / "train.tsv").unlink()
    assert load_topics(beir) == {"q1": "first"}  # the only split
    (beir / "qrels" / "dev.tsv").unlink()
    with pytest.raises(InputError, match=r"qrels: no qrels here; expected test\.tsv"):
        load_qrels(beir)
    (beir / "qrels").rmdir()
    assert list(load_topics(beir)) == ["q1", "q2", "q3"]
    (beir / "corpus.jsonl").unlink()
    with pytest.raises(InputError, match=r"no corpus\.jsonl in this folder"):
        list(load_documents(beir))
    (beir / "queries.jsonl.gz").unlink()
    with pytest.raises(InputError, match=r"a folder without corpus\.jsonl and queries\.jsonl"):
        load_topics(beir)


@pytest.mark.parametrize("name", SHORT_NAMES)
def test_short_names_are_ids_that_ir_datasets_has(name: str) -> None:
    dataset = load(name)
    has = {part: getattr(dataset, f"has_{part}")() for part in ("docs", "queries", "qrels")}
    whole_collection = name.startswith(("msmarco-v1-", "msmarco-v2-")) and "dev" not in name
    assert has == {"docs": True, "queries": not whole_collection, "qrels": not whole_collection}
    if name.startswith("dl"):
        year, _, kind = name.removeprefix("dl").partition("-")
        collection = f"msmarco-{kind or 'passage'}" + ("-v2" if year == "21" else "")
        assert SHORT_NAMES[name] == f"{collection}/trec-dl-20{year}/judged"
