"""TripClick by name: the unpacked release, ir_datasets' folder, and what is said when neither is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.data.documents import load_documents
from rnnreranker.data.qrels import load_qrels
from rnnreranker.data.topics import load_topics

DOC = """<DOC>
<DOCNO>{}</DOCNO>
<TITLE>{}</TITLE>
<URL>http://example.org/{}</URL>
<TEXT>
{}
</TEXT>
</DOC>

"""
TOPIC = "<top>\n\n<num> Number: {}\n<title> {}\n\n<desc> Description:\n\n<narr> Narrative:\n\n</top>\n\n"


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """A release of three documents, in the format of the real one."""
    folder = tmp_path / "release" / "benchmark"
    for name in ("documents", "topics", "qrels"):
        (folder / name).mkdir(parents=True)
    (folder / "documents" / "docs_grp_2.txt").write_text(
        DOC.format("11", "Zinc for colds", 11, "Two trials.\nNo effect.") + DOC.format("12", "Gout", 12, "Uric acid.")
    )
    (folder / "documents" / "docs_grp_10.txt").write_text(DOC.format("13", "Statins", 13, "Lower lipids."))
    for group in ("head", "torso", "tail"):
        for split in ("train", "val", "test"):
            text = TOPIC.format(f"{group}{split}1", f"{group} {split} zinc") + TOPIC.format(f"{group}{split}2", "gout")
            (folder / "topics" / f"topics.{group}.{split}.txt").write_text(text)
            raw = f"{group}{split}1 0 11 1\n{group}{split}1 0 13 0\n{group}{split}2 0 12 1\n"
            (folder / "qrels" / f"qrels.raw.{group}.{split}.txt").write_text(raw)
        (folder / "qrels" / f"qrels.dctr.head.{split}.txt").write_text("headtest1 0 11 3\nheadtest1 0 13 1\n")
    (folder / "qrels" / "qrels.dctr.head.val.txt").write_text("headval1 0 11 2\n")
    return folder


DOCUMENTS = [
    ("11", "Zinc for colds\nTwo trials.\nNo effect."),
    ("12", "Gout\nUric acid."),
    ("13", "Statins\nLower lipids."),
]


@pytest.mark.parametrize("inside", ["benchmark", "."])
def test_the_unpacked_release(benchmark: Path, inside: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("TRIPCLICK_HOME", str(benchmark.parent if inside == "benchmark" else benchmark))
    assert [(d.docid, d.text) for d in load_documents("tripclick")] == DOCUMENTS
    assert [d.docid for d in load_documents(benchmark / "documents")] == ["11", "12", "13"]
    assert list(load_documents(benchmark)) == list(load_documents("tripclick"))
    assert load_topics(benchmark / "topics" / "topics.tail.val.txt") == load_topics("tripclick-tail-val")
    assert load_topics("tripclick-head-val") == {"headval1": "head val zinc", "headval2": "gout"}
    assert load_topics("tripclick-torso") == {"torsotest1": "torso test zinc", "torsotest2": "gout"}
    assert load_qrels("tripclick-head-val-dctr").values.tolist() == [["headval1", "11", 2]]
    assert load_qrels("tripclick-head-test-dctr")["relevance"].tolist() == [3, 1]
    raw = load_qrels("tripclick-tail-train-raw")
    assert raw.values.tolist() == [["tailtrain1", "11", 1], ["tailtrain1", "13", 0], ["tailtrain2", "12", 1]]
    assert load_qrels("tripclick-tail-train").equals(raw)


def in_process(code: str, home: Path) -> list[str]:
    environment = {**os.environ, "IR_DATASETS_HOME": str(home)}
    environment.pop("TRIPCLICK_HOME", None)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_missing_release_says_what_to_ask_for_and_where_to_put_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, benchmark: Path
) -> None:
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    monkeypatch.delenv("TRIPCLICK_HOME", raising=False)
    for load in (load_topics, load_qrels):
        with pytest.raises(UnavailableError) as caught:
            load("tripclick-head-test-dctr")
        message = str(caught.value)
        assert message.startswith("tripclick-head-test-dctr: the ")
        assert "https://tripdatabase.github.io/tripclick (an agreement is signed)" in message
        assert (
            f"set TRIPCLICK_HOME to its folder `benchmark`, or put benchmark.tar.gz into {tmp_path}/irds/trip"
            in message
        )
        assert "\n" not in message
    monkeypatch.setenv("TRIPCLICK_HOME", str(benchmark))
    (benchmark / "qrels" / "qrels.raw.tail.test.txt").unlink()
    with pytest.raises(UnavailableError, match=r"looked for .*/qrels/qrels\.raw\.tail\.test\.txt; ask for"):
        load_qrels("tripclick-tail")


def test_a_topic_of_trec_that_stands_twice(tmp_path: Path) -> None:
    path = tmp_path / "topics.txt"
    path.write_text(TOPIC.format("1", "a") + TOPIC.format("1", "b"))
    with pytest.raises(InputError, match=r"topics\.txt:12: query id 1 stands here a second time"):
        load_topics(path)
