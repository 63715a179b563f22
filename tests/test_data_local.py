"""Local data sets by name: folders in BEIR layout, TripClick's release; short names of ir_datasets."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from refusals import refusal

from rnnreranker.base.errors import UnavailableError
from rnnreranker.data.documents import load_documents
from rnnreranker.data.irds import load
from rnnreranker.data.local import files_of
from rnnreranker.data.names import SHORT_NAMES
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics

HEADER = "query-id\tcorpus-id\tscore\n"


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": "d1", "title": "A", "text": "one"}, {"_id": "d2", "title": "", "text": "two"}]
    queries = [{"_id": "q1", "text": "first"}, {"_id": "q2", "text": "second"}, {"_id": "q3", "text": "unjudged"}]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in corpus))
    (folder / "queries.jsonl.gz").write_bytes(gzip.compress("\n".join(json.dumps(line) for line in queries).encode()))
    (folder / "qrels" / "test.tsv").write_text(f"{HEADER}q2\td1\t2\n")
    (folder / "qrels" / "dev.tsv").write_text(f"{HEADER}q1\td2\t1\n")
    return folder


def test_a_folder_is_its_test_split_or_the_named_one(beir: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = home / "data" / "mine"
    with pytest.raises(UnavailableError, match=rf"collections/mine: no folder {where}; .* RNNRERANKER_COLLECTIONS"):
        load_topics("collections/mine")
    monkeypatch.setenv("RNNRERANKER_COLLECTIONS", str(beir.parent))
    for name in (str(beir), "collections/mine"):
        assert [(d.docid, d.text) for d in load_documents(name)] == [("d1", "A\none"), ("d2", "two")]
        assert load_topics(name) == {"q2": "second"}
        assert load_topics(f"{name}:dev") == {"q1": "first"}
        assert load_qrels(name).values.tolist() == [["q2", "d1", 2]]
        assert load_qrels(f"{name}:dev").values.tolist() == [["q1", "d2", 1]]


@pytest.mark.parametrize("judged", ["", HEADER, f"{HEADER}q9\td1\t2\n"])
def test_topics_of_a_folder_whose_qrels_judge_none(beir: Path, judged: str) -> None:
    (beir / "qrels" / "test.tsv").write_text(judged)
    with refusal(r"mine: no (judgements|topics among the 3 of .*, as its qrels judge none)"):
        load_topics(beir)


def test_folders_that_lack_something_say_what(beir: Path) -> None:
    for split in ("train", "cold-5-train", "standard-1-dev"):
        with refusal(rf"no qrels/{split}\.tsv; splits here: dev, test; .* or standard or cold, 1"):
            load_topics(f"{beir}:{split}")
    (beir / "qrels" / "test.tsv").rename(beir / "qrels" / "train.tsv")
    with refusal(r"no qrels/test\.tsv; splits here: dev, train; expected one .*mine:dev"):
        load_topics(beir)
    (beir / "qrels" / "train.tsv").unlink()
    assert load_topics(beir) == {"q1": "first"}  # the only split
    (beir / "qrels" / "dev.tsv").unlink()
    with refusal(r"splits here: none"):
        load_qrels(beir)
    (beir / "qrels").rmdir()
    assert list(load_topics(beir)) == ["q1", "q2", "q3"]
    (beir / "corpus.jsonl").unlink()
    with refusal(r"no corpus\.jsonl in this folder"):
        list(load_documents(beir))
    (beir / "queries.jsonl.gz").unlink()
    with refusal(r"a folder without corpus\.jsonl and queries\.jsonl"):
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


DOC = "<DOC>\n<DOCNO>{}</DOCNO>\n<TITLE>{}</TITLE>\n<URL>http://example.org</URL>\n<TEXT>\n{}\n</TEXT>\n</DOC>\n\n"
TOPIC = "<top>\n\n<num> Number: {}\n<title> {}\n\n<desc> Description:\n\n<narr> Narrative:\n\n</top>\n\n"


@pytest.fixture
def benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A release of TripClick of three documents, in the format of the real one."""
    folder = tmp_path / "release" / "benchmark"
    files = {
        "documents/docs_grp_2.txt": DOC.format("11", "Zinc for colds", "Two trials.\nNo effect.")
        + DOC.format("12", "Gout", "Uric acid."),
        "documents/docs_grp_10.txt": DOC.format("13", "Statins", "Lower lipids."),
        "topics/topics.head.val.txt": TOPIC.format("1", "zinc") + TOPIC.format("2", "gout"),
        "topics/topics.torso.test.txt": TOPIC.format("3", "statins"),
        "qrels/qrels.raw.head.val.txt": "1 0 11 1\n1 0 13 0\n2 0 12 1\n",
        "qrels/qrels.dctr.head.val.txt": "1 0 11 2\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    monkeypatch.delenv("TRIPCLICK_HOME", raising=False)
    return folder


@pytest.mark.parametrize("inside", ["benchmark", "."])
def test_the_release_of_tripclick(benchmark: Path, inside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIPCLICK_HOME", str(benchmark.parent if inside == "benchmark" else benchmark))
    assert [(d.docid, d.text) for d in load_documents("tripclick")] == [
        ("11", "Zinc for colds\nTwo trials.\nNo effect."),
        ("12", "Gout\nUric acid."),
        ("13", "Statins\nLower lipids."),
    ]
    assert list(load_documents(benchmark / "documents")) == list(load_documents("tripclick"))
    assert load_topics("tripclick-head-val") == {"1": "zinc", "2": "gout"}
    assert load_topics("tripclick-torso") == {"3": "statins"}
    assert load_qrels("tripclick-head-val-dctr").values.tolist() == [["1", "11", 2]]
    assert load_qrels("tripclick-head-val-raw").values.tolist() == [["1", "11", 1], ["1", "13", 0], ["2", "12", 1]]
    assert load_qrels("tripclick-head-val").equals(load_qrels("tripclick-head-val-raw"))
    with pytest.raises(UnavailableError, match=r"looked for .*/qrels/qrels\.raw\.tail\.test\.txt; ask for"):
        load_qrels("tripclick-tail")


def test_tripclick_that_is_not_here_says_what_to_ask_for_and_where_to_put_it(benchmark: Path, tmp_path: Path) -> None:
    said = (
        r"^tripclick-head-test-dctr: the \w+ are not here; .*https://tripdatabase.github.io/tripclick \(an agreement "
        r"is signed\).*set TRIPCLICK_HOME to its folder `benchmark`, or put it into"
    )
    for part in ("topics", "qrels"):
        with pytest.raises(UnavailableError, match=said):
            files_of("tripclick-head-test-dctr", part)
    for name in ("tripclick-tail-test-dctr", "tripclick-head-dev", "tripclick"):
        with refusal(f"{name}: expected tripclick, or tripclick-GROUP-SPLIT"):
            load_qrels(name)
    (tmp_path / "irds" / "tripclick").mkdir(parents=True)
    (tmp_path / "irds" / "tripclick" / "benchmark.tar.gz").touch()
    assert files_of("tripclick", "documents") == []  # of ir_datasets
